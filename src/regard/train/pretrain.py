"""A run that learns from plain text what others can be built on: BERT, ELMo."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from regard.batch.batches import Batches
from regard.batch.pair import Pair
from regard.config.settings import PretrainSettings, Settings
from regard.corpora.corpus import Corpus, Record
from regard.models.catalogue import build as build_model
from regard.tasks.bilm import Bilm
from regard.tasks.loss import Loss
from regard.tasks.pretrain import Pretrain
from regard.text.marks import load_tokeniser, marks_of
from regard.text.tokeniser import Tokeniser
from regard.train.examples import examples
from regard.train.run import Reply, Run, Told, vocabulary


class PretrainRun(Run):
    """Hidden words and what follows what (BERT), or the words before and behind (ELMo)."""

    kept: ClassVar = {"text": load_tokeniser}
    counted: ClassVar = "pairs"
    settings: PretrainSettings
    task: Pretrain | Bilm

    def asked(self) -> Pretrain | Bilm:
        mask, text = self.settings.mask, self.vocabularies["text"]
        kind, wanted = self.settings.model.kind, self.settings.model.model_dump(exclude={"kind"})
        if kind == "elmo":
            return Bilm(build_model(kind, {**wanted, "size": text.size}), text)
        return Pretrain(
            build_model(kind, {**wanted, "size": marks_of(text).size}),
            text,
            rate=mask.rate,
            whole_words=mask.whole_words,
            next_sentence=mask.next_sentence,
        )

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Tokeniser]:
        return {"text": vocabulary(settings.text, corpus, "text")}

    def batches(self, corpus: Corpus) -> Batches:
        """Stretches of text, or pairs of them; which words are hidden is drawn each time."""
        train = self.settings.train
        return Batches(
            examples(
                lambda: corpus.read("train"),
                self.pairs,
                self.task.fields,
                self.settings,
                packed=isinstance(self.task, Pretrain),  # else there are words, not ids
                stream=False,
            ),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    def pairs(self, records: Iterable[Record]) -> Iterator[Pair]:
        return self.task.pairs(records, self.longest, self.settings.seed)

    @property
    def longest(self) -> int:
        """Tokens of an example, without the marks."""
        context = getattr(self.settings.model, "context", math.inf)
        return int(min(self.settings.train.longest, context - self.task.places))

    def loss(self, batch: Any, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(self.told(records))

    def told(self, records: Iterable[Record]) -> list[Pair]:
        """What is measured: the same each time."""
        return list(self.task.pairs(records, self.longest))

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        records = list(records)
        found = self.task.scores(self.told(records))
        if told is not None:
            told(len(records))
        return found

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """What the task has to say of a text: what is hidden in it, or how likely it is."""
        return [
            Reply(*self.task.reply(text, place.format(number)))
            for number, text in enumerate(texts, 1)
        ]
