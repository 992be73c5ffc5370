"""A run that translates: two vocabularies, pairs of texts, BLEU."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from torch import nn

from regard.batching.batches import Batches
from regard.batching.example import Batch, Example
from regard.config.settings import TranslateSettings
from regard.data.corpus import Corpus, Record
from regard.metrics.language import perplexity
from regard.metrics.translation import bleu, chrf, exact_match, ter
from regard.tasks.guide import GuidedTranslateTask
from regard.tasks.loss import Loss
from regard.tasks.translate import TranslateTask
from regard.train.pairs import SIDES, Seq2SeqRun
from regard.train.run import Prediction, ProgressCallback
from regard.training.build import teacher_forcing_rate
from regard.training.examples import build_examples

MAX_EVALUATION_TOKENS = 256  # tokens of a side, at most, where likelihood is measured


class TranslateRun(Seq2SeqRun):
    """A source text into a target text."""

    settings: TranslateSettings
    task: TranslateTask
    training_task: TranslateTask | GuidedTranslateTask

    def build_task_for(self, model: nn.Module) -> TranslateTask:
        self.training_task = task = TranslateTask(model, **self.vocabularies)
        return task

    def batches(self, corpus: Corpus) -> Batches:
        """Pairs of about equal length together; with their links, if these are to be learnt."""
        train = self.settings.train
        if train.guided_alignment_weight and train.alignments is not None:
            self.training_task = GuidedTranslateTask(
                self.task, train.alignments, train.guided_alignment_weight
            )
            self.training_task.check(corpus.read("train"))
        training_task, max_tokens = self.training_task, self.max_tokens

        def read_records() -> Iterator[Record]:
            records = corpus.read("train")
            return (
                training_task.with_links(records)
                if isinstance(training_task, GuidedTranslateTask)
                else records
            )

        def to_examples(records: Iterable[Record]) -> Iterator[Example]:
            return training_task.examples(records, max_tokens)

        return Batches(
            build_examples(
                read_records, to_examples, SIDES, self.settings, packed=training_task is self.task
            ),
            tokens_per_batch=train.tokens_per_batch,
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
        )

    def loss(self, batch: Batch, steps_done: int) -> Loss:
        train = self.settings.train
        return self.training_task.loss(
            batch, train.label_smoothing, teacher_forcing_rate(train, steps_done)
        )

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        self.check_inputs(lines, location_format)
        predictions = []
        for text, outputs in zip(lines, self.predict(lines), strict=True):
            hypotheses = [
                {"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs
            ]
            predictions.append(Prediction(outputs[0].text, {"source": text, "outputs": hypotheses}))
        return predictions

    def check_inputs(self, texts: Sequence[str], location_format: str) -> None:
        """Say which text is longer than any that was trained on; nothing is cut off in silence."""
        for number, ids in enumerate(self.task.source.encode_ids(texts), 1):
            if len(ids) > self.max_tokens:
                raise ValueError(
                    f"{location_format.format(number)}: {len(ids)} tokens, but the run has "
                    "learnt from texts "
                    f"of {self.max_tokens} at most; split it into sentences, or train with "
                    "a larger "
                    f"train.max_tokens"
                )

    def score(
        self,
        records: Iterable[Record],
        on_progress: ProgressCallback | None = None,
        tokenize: str = "13a",
    ) -> dict[str, float | str]:
        """BLEU (its tokeniser: `tokenize`), chrF, TER, exact match, perplexity, and signatures."""
        records = list(records)
        outputs = [
            best[0].text
            for best in self.predict([r["source"] for r in records], on_progress=on_progress)
        ]
        return self.metrics(records, outputs, tokenize)

    def metrics(
        self, records: Sequence[Record], outputs: Sequence[str], tokenize: str = "13a"
    ) -> dict[str, float | str]:
        """What `score` says, of outputs that are there already."""
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        references = [record["target"] for record in records]
        metrics: dict[str, float | str] = {}
        tokenized_bleu = partial(bleu, tokenize=tokenize, force=tokenize == "none")
        for name, metric in (("bleu", tokenized_bleu), ("chrf", chrf), ("ter", ter)):
            score = metric(outputs, references)
            metrics[name], metrics[f"{name}_signature"] = score.value, score.signature
        metrics["exact"] = exact_match(outputs, references)
        examples = self.evaluation_examples(records)
        loss = self.task.negative_log_likelihood(examples)
        metrics["perplexity"] = perplexity(loss.total.item(), loss.count)
        metrics["sentences"] = len(records)
        if skipped := len(records) - len(examples):
            metrics["not_in_perplexity"] = skipped
        return metrics

    def validation_metric(self, metric: str, records: Sequence[Record]) -> float:
        outputs = [best[0].text for best in self.predict([r["source"] for r in records])]
        references = [record["target"] for record in records]
        score = {"bleu": bleu, "chrf": chrf, "ter": ter}.get(metric)
        return score(outputs, references).value if score else exact_match(outputs, references)

    def evaluation_examples(self, records: Iterable[Record]) -> list[Example]:
        max_tokens = int(min(MAX_EVALUATION_TOKENS, self.max_positions))
        if examples := list(self.task.examples(records, max_tokens)):
            return examples
        raise ValueError(
            f"no pair has at most {max_tokens} tokens a side: no likelihood to measure"
        )
