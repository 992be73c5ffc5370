"""A run that translates: two vocabularies, pairs of texts, BLEU."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from torch import nn

from regard.batch.batches import Batches
from regard.batch.pair import Batch, Pair
from regard.config.settings import TranslateSettings
from regard.corpora.corpus import Corpus, Record
from regard.metric.language import perplexity
from regard.metric.translation import bleu, chrf, exact_match, ter
from regard.tasks.guide import Guided
from regard.tasks.loss import Loss
from regard.tasks.translate import Translator
from regard.train.examples import examples
from regard.train.make import forcing
from regard.train.pairs import SIDES, PairRun
from regard.train.run import Reply, Told

SCORED = 256  # tokens of a side, at most, where likelihood is measured


class TranslateRun(PairRun):
    """A source text into a target text."""

    settings: TranslateSettings
    task: Translator
    lessons: Translator | Guided

    def task_of(self, model: nn.Module) -> Translator:
        self.lessons = task = Translator(model, **self.vocabularies)
        return task

    def batches(self, corpus: Corpus) -> Batches:
        """Pairs of about equal length together; with their links, if these are to be learnt."""
        train = self.settings.train
        if train.guided_alignment and train.alignments is not None:
            self.lessons = Guided(self.task, train.alignments, train.guided_alignment)
            self.lessons.check(corpus.read("train"))
        lessons, longest = self.lessons, self.longest

        def read() -> Iterator[Record]:
            records = corpus.read("train")
            return lessons.linked(records) if isinstance(lessons, Guided) else records

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            return lessons.pairs(records, longest)

        return Batches(
            examples(read, pairs, SIDES, self.settings, packed=lessons is self.task),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
        )

    def loss(self, batch: Batch, done: int) -> Loss:
        train = self.settings.train
        return self.lessons.loss(batch, train.label_smoothing, forcing(train, done))

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        self.check(texts, place)
        found = []
        for text, outputs in zip(texts, self.predict(texts), strict=True):
            told = [{"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs]
            found.append(Reply(outputs[0].text, {"source": text, "outputs": told}))
        return found

    def check(self, texts: Sequence[str], place: str) -> None:
        """Say which text is longer than any that was trained on; nothing is cut off in silence."""
        for number, ids in enumerate(self.task.source.ids(texts), 1):
            if len(ids) > self.longest:
                raise ValueError(
                    f"{place.format(number)}: {len(ids)} tokens, but the run has learnt from texts "
                    f"of {self.longest} at most; split it into sentences, or train with a larger "
                    f"train.longest"
                )

    def score(
        self, records: Iterable[Record], told: Told | None = None, tokenize: str = "13a"
    ) -> dict[str, float | str]:
        """BLEU (its tokeniser: `tokenize`), chrF, TER, exact match, perplexity, and signatures."""
        records = list(records)
        outputs = [best[0].text for best in self.predict([r["source"] for r in records], told=told)]
        return self.rate(records, outputs, tokenize)

    def rate(
        self, records: Sequence[Record], outputs: Sequence[str], tokenize: str = "13a"
    ) -> dict[str, float | str]:
        """What `score` says, of outputs that are there already."""
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        references = [record["target"] for record in records]
        found: dict[str, float | str] = {}
        tokenized = partial(bleu, tokenize=tokenize, force=tokenize == "none")
        for name, metric in (("bleu", tokenized), ("chrf", chrf), ("ter", ter)):
            score = metric(outputs, references)
            found[name], found[f"{name}_signature"] = score.value, score.signature
        found["exact"] = exact_match(outputs, references)
        pairs = self.measurable(records)
        loss = self.task.likelihood(pairs)
        found["perplexity"] = perplexity(loss.total.item(), loss.tokens)
        found["sentences"] = len(records)
        if too_long := len(records) - len(pairs):
            found["not_in_perplexity"] = too_long
        return found

    def measured(self, metric: str, records: Sequence[Record]) -> float:
        outputs = [best[0].text for best in self.predict([r["source"] for r in records])]
        references = [record["target"] for record in records]
        score = {"bleu": bleu, "chrf": chrf, "ter": ter}.get(metric)
        return score(outputs, references).value if score else exact_match(outputs, references)

    def measurable(self, records: Iterable[Record]) -> list[Pair]:
        most = int(min(SCORED, self.reach))
        if pairs := list(self.task.pairs(records, most)):
            return pairs
        raise ValueError(f"no pair has at most {most} tokens a side: no likelihood to measure")
