"""Runs of an encoder with a head, whatever the head is for."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from regard.batch.batches import Batches
from regard.batch.pair import Pair
from regard.config.settings import Settings
from regard.corpora.corpus import Corpus, Record
from regard.models.catalogue import build as build_model
from regard.tasks.loss import Loss
from regard.text.marks import AnyTokeniser, load_tokeniser, marks_of
from regard.train.base import encoder_weights, inherited, layered
from regard.train.examples import examples
from regard.train.run import Run, Told, vocabulary


class HeadedRun(Run):
    """An encoder with a head: trained on texts of about equal length together."""

    marks: ClassVar[int]  # positions that marks take
    scored: ClassVar[str]  # what a score has the number of
    settings: Any

    def encoder(self, text: AnyTokeniser) -> Any:
        """As the settings say."""
        kind = self.settings.model.kind
        wanted = self.settings.model.model_dump(exclude={"kind"})
        if kind == "elmo":  # which reads letters
            return build_model(kind, wanted)
        size = marks_of(text).size if kind == "bert" else text.size
        return build_model(kind, {**wanted, "size": size})

    @classmethod
    def settled(cls, settings: Settings) -> Settings:
        return inherited(settings)

    @classmethod
    def tokeniser(cls, settings: Any, corpus: Corpus, *fields: str) -> AnyTokeniser:
        """Of the run that it starts from, or learnt from these fields."""
        if settings.start.run is not None:
            return load_tokeniser(Path(settings.start.run) / "text.json")
        return vocabulary(settings.text, corpus, *fields)

    def inherit(self) -> None:
        """The encoder of the run that it starts from; that one's heads are left behind."""
        if self.settings.start.run is not None:
            encoder_weights(self.task.model.encoder, Path(self.settings.start.run))

    def layers(self) -> list[dict[str, Any]]:
        return layered(self.model, self.settings) or super().layers()

    def batches(self, corpus: Corpus) -> Batches:
        train = self.settings.train

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            return self.task.pairs(records, self.longest)

        def read() -> Iterator[Record]:
            return corpus.read("train")

        return Batches(
            examples(read, pairs, ["text"], self.settings, packed=self.task.packed),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    @property
    def longest(self) -> int:
        """Tokens of text, at most; the marks need places, too."""
        context = getattr(self.settings.model, "context", math.inf)
        return int(min(self.settings.train.longest, context - self.marks))

    def loss(self, batch: Any, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch, self.settings.train.label_smoothing)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(list(self.task.pairs(records, self.longest)))

    def measured(self, metric: str, records: Sequence[Record]) -> float:
        return float(self.rate(records)[metric])

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """The metrics of the task, in percent, with the loss of one of what is counted."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        loss = self.likelihood(records)
        found = self.rate(records, told)
        return {**found, "loss": loss.total.item() / loss.tokens, self.scored: len(records)}

    @abstractmethod
    def rate(self, records: Sequence[Record], told: Told | None = None) -> dict[str, float | str]:
        """The metrics of the task, in percent."""
