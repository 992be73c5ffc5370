"""A run that summarises: documents, of which the beginning is read, summaries, ROUGE."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from torch import nn

from regard.batch.batches import Batches, Streamed
from regard.batch.pair import Batch, Pair
from regard.config.settings import SummariseSettings
from regard.corpora.corpus import Corpus, Record
from regard.metric.language import perplexity
from regard.metric.summary import copied, repeated, rouge
from regard.metric.translation import exact_match
from regard.tasks.loss import Loss
from regard.tasks.summarise import Summariser
from regard.tasks.translate import Translation
from regard.text.extended import tokens_of
from regard.text.special import UNKNOWN
from regard.train.examples import examples
from regard.train.pairs import SIDES, PairRun
from regard.train.run import Reply, Told


class SummariseRun(PairRun):
    """A document into its summary."""

    forbidden: ClassVar = (UNKNOWN,)  # no reader has any use for it
    settings: SummariseSettings
    task: Summariser

    def task_of(self, model: nn.Module) -> Summariser:
        most = int(min(self.settings.train.longest_summary, self.reach))
        return Summariser(model, **self.vocabularies, longest=self.longest, longest_summary=most)

    @property
    def turn(self) -> int:
        model, train = self.settings.model, self.settings.train
        return train.coverage_after if model.kind == "pointer" and model.coverage else 0

    def batches(self, corpus: Corpus) -> Batches:
        """Pairs of about equal length together; what was cut of them is told."""
        train, task, seen = self.settings.train, self.task, [0]

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            for pair in task.pairs(records):
                seen[0] += 1
                yield pair

        found = examples(lambda: corpus.read("train"), pairs, SIDES, self.settings)
        limits = {"documents": ("longest", task.longest)}
        limits["summaries"] = ("longest_summary", task.longest_summary)
        for what, (name, limit) in limits.items():
            if isinstance(found, Streamed):  # nobody has counted them yet
                notice(f"some {what} perhaps", f"train.{name} = {limit}")
            elif task.cut[what]:
                notice(f"{task.cut[what]:,} of {seen[0]:,} {what}", f"train.{name} = {limit}")
        return Batches(
            found,
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
        )

    def loss(self, batch: Batch, done: int) -> Loss:
        train = self.settings.train
        coverage = train.coverage if done >= train.coverage_after else None
        return self.task.loss(batch, train.label_smoothing, coverage=coverage)

    def measurable(self, records: Iterable[Record]) -> list[Pair]:
        return list(self.task.pairs(records))

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        self.check(texts, place)
        found = []
        for text, outputs in zip(texts, self.predict(texts), strict=True):
            told = [{"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs]
            found.append(Reply(outputs[0].text, {"document": text, "outputs": told}))
        return found

    def further(self, text: str) -> dict[str, Any]:
        """How the words of the best summary came about, where they can be copied."""
        said = self.task.said(text, self(text).ids)
        return {"words": [one._asdict() for one in said]} if said else {}

    def check(self, texts: Sequence[str], place: str) -> None:
        """Nothing is summarised from nothing; and if not all is read, it is said, once."""
        for number, text in enumerate(texts, 1):
            if not text.strip():
                raise ValueError(f"{place.format(number)}: the document is empty")
        self.tell_cut(texts)

    def tell_cut(self, texts: Sequence[str]) -> None:
        longest = self.task.longest
        many = sum(len(ids) > longest for ids in self.task.source.ids(list(texts)))
        if many:
            notice(f"{many:,} of {len(texts):,} documents", f"train.longest = {longest}")

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """ROUGE, exact match, what is repeated and copied, and perplexity."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        texts = [record["source"] for record in records]
        self.tell_cut(texts)
        best = [outputs[0] for outputs in self.predict(texts, told=told)]
        outputs = [one.text for one in best]
        references = [record.get("references", [record["target"]]) for record in records]
        values, signature = rouge(outputs, references)
        found: dict[str, float | str] = {}
        for name, value in values.items():
            found[name], found[f"{name}_signature"] = value, signature
        found["exact"] = exact_match(outputs, references)
        found["repeated"] = repeated(outputs)
        found["copied"] = self.copied(texts, best)
        found["words"] = sum(len(text.split()) for text in outputs) / len(outputs)
        loss = self.task.likelihood(self.measurable(records))
        found["perplexity"] = perplexity(loss.total.item(), loss.tokens)
        found["documents"] = len(records)
        return found

    def copied(self, texts: Sequence[str], best: Sequence[Translation]) -> float:
        """Tokens of outputs that are tokens of what was read, in percent."""
        read = self.task.read(texts)
        said = [
            tokens_of(self.task.target, one.ids, source.words)
            for one, source in zip(best, read, strict=True)
        ]
        return copied(said, [tokens_of(self.task.source, one.ids, one.words) for one in read])


def notice(what: str, limit: str) -> None:
    """Nothing is cut off in silence."""
    print(f"notice: {what} are longer than {limit} tokens: the end is not read", file=sys.stderr)
