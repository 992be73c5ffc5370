"""A run that summarizes: documents, of which the beginning is read, summaries, ROUGE."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from torch import nn

from regard.batching.batches import Batches, StreamedExamples
from regard.batching.example import Batch, Example
from regard.config.settings import SummarizeSettings
from regard.data.corpus import Corpus, Record
from regard.metrics.language import perplexity
from regard.metrics.summary import copy_rate, repetition_rate, rouge
from regard.metrics.translation import exact_match
from regard.tasks.loss import Loss
from regard.tasks.summarize import SummarizeTask
from regard.tasks.translate import TextPrediction
from regard.text.copy_vocabulary import tokens_with_copies
from regard.text.special import UNKNOWN
from regard.train.pairs import SIDES, Seq2SeqRun
from regard.train.run import Prediction, ProgressCallback
from regard.training.examples import build_examples


class SummarizeRun(Seq2SeqRun):
    """A document into its summary."""

    forbidden_ids: ClassVar = (UNKNOWN,)  # no reader has any use for it
    settings: SummarizeSettings
    task: SummarizeTask

    def build_task_for(self, model: nn.Module) -> SummarizeTask:
        max_summary_tokens = int(min(self.settings.train.max_summary_tokens, self.max_positions))
        return SummarizeTask(
            model,
            **self.vocabularies,
            max_tokens=self.max_tokens,
            max_summary_tokens=max_summary_tokens,
        )

    @property
    def best_resets_after(self) -> int:
        model, train = self.settings.model, self.settings.train
        return train.coverage_after if model.kind == "pointer" and model.coverage else 0

    def batches(self, corpus: Corpus) -> Batches:
        """Pairs of about equal length together; what was cut of them is told."""
        train, task, counter = self.settings.train, self.task, [0]

        def to_examples(records: Iterable[Record]) -> Iterator[Example]:
            for example in task.examples(records):
                counter[0] += 1
                yield example

        train_examples = build_examples(
            lambda: corpus.read("train"), to_examples, SIDES, self.settings
        )
        limits = {"documents": ("max_tokens", task.max_tokens)}
        limits["summaries"] = ("max_summary_tokens", task.max_summary_tokens)
        for unit, (setting, limit) in limits.items():
            if isinstance(train_examples, StreamedExamples):  # nobody has counted them yet
                warn_truncation(f"some {unit} perhaps", f"train.{setting} = {limit}")
            elif task.truncated_counts[unit]:
                warn_truncation(
                    f"{task.truncated_counts[unit]:,} of {counter[0]:,} {unit}",
                    f"train.{setting} = {limit}",
                )
        return Batches(
            train_examples,
            tokens_per_batch=train.tokens_per_batch,
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
        )

    def loss(self, batch: Batch, steps_done: int) -> Loss:
        train = self.settings.train
        coverage = train.coverage_weight if steps_done >= train.coverage_after else None
        return self.task.loss(batch, train.label_smoothing, coverage=coverage)

    def evaluation_examples(self, records: Iterable[Record]) -> list[Example]:
        return list(self.task.examples(records))

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        self.check_inputs(lines, location_format)
        predictions = []
        for text, outputs in zip(lines, self.predict(lines), strict=True):
            hypotheses = [
                {"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs
            ]
            predictions.append(
                Prediction(outputs[0].text, {"document": text, "outputs": hypotheses})
            )
        return predictions

    def details(self, text: str) -> dict[str, Any]:
        """How the words of the best summary came about, where they can be copied."""
        traces = self.task.copy_traces(text, self(text).ids)
        return {"words": [trace._asdict() for trace in traces]} if traces else {}

    def check_inputs(self, texts: Sequence[str], location_format: str) -> None:
        """Nothing is summarized from nothing; and if not all is read, it is said, once."""
        for number, text in enumerate(texts, 1):
            if not text.strip():
                raise ValueError(f"{location_format.format(number)}: the document is empty")
        self.warn_truncated_documents(texts)

    def warn_truncated_documents(self, texts: Sequence[str]) -> None:
        max_tokens = self.task.max_tokens
        truncated_count = sum(
            len(ids) > max_tokens for ids in self.task.source.encode_ids(list(texts))
        )
        if truncated_count:
            warn_truncation(
                f"{truncated_count:,} of {len(texts):,} documents",
                f"train.max_tokens = {max_tokens}",
            )

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """ROUGE, exact match, what is repeated and copied, and perplexity."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        texts = [record["source"] for record in records]
        self.warn_truncated_documents(texts)
        hypotheses = [outputs[0] for outputs in self.predict(texts, on_progress=on_progress)]
        outputs = [hypothesis.text for hypothesis in hypotheses]
        references = [record.get("references", [record["target"]]) for record in records]
        values, signature = rouge(outputs, references)
        metrics: dict[str, float | str] = {}
        for name, value in values.items():
            metrics[name], metrics[f"{name}_signature"] = value, signature
        metrics["exact"] = exact_match(outputs, references)
        metrics["repeated"] = repetition_rate(outputs)
        metrics["copied"] = self.copied_percentage(texts, hypotheses)
        metrics["words"] = sum(len(text.split()) for text in outputs) / len(outputs)
        loss = self.task.negative_log_likelihood(self.evaluation_examples(records))
        metrics["perplexity"] = perplexity(loss.total.item(), loss.count)
        metrics["documents"] = len(records)
        return metrics

    def copied_percentage(
        self, texts: Sequence[str], hypotheses: Sequence[TextPrediction]
    ) -> float:
        """Tokens of outputs that are tokens of what was read, in percent."""
        documents = self.task.encode_documents(texts)
        output_tokens = [
            tokens_with_copies(self.task.target, one.ids, source.words)
            for one, source in zip(hypotheses, documents, strict=True)
        ]
        return copy_rate(
            output_tokens,
            [tokens_with_copies(self.task.source, one.ids, one.words) for one in documents],
        )


def warn_truncation(subject: str, limit: str) -> None:
    """Nothing is cut off in silence."""
    print(f"notice: {subject} are longer than {limit} tokens: the end is not read", file=sys.stderr)
