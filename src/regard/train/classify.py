"""A run that classifies: a text or two into one of the classes of its data."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from regard.batch.batches import Batches
from regard.batch.pair import Pair
from regard.config.settings import ClassifySettings, Settings
from regard.corpora.corpus import Corpus, Record, place
from regard.encode.lora import add_lora
from regard.metric.classes import accuracy, macro_f1
from regard.models.catalogue import build as build_model
from regard.tasks.classify import Classify, Headed, Labelled, Verdict
from regard.tasks.inputs import BySentence, Marked, Plain, Spelled
from regard.tasks.loss import Loss
from regard.text.labels import Labels
from regard.text.marks import load_tokeniser, marks_of
from regard.train.base import encoder_weights, inherited, layered
from regard.train.examples import examples
from regard.train.run import Reply, Run, Told, vocabulary

MARKS = 3  # of two texts: START, and END twice


class ClassifyRun(Run):
    """Sentiment, topics, pairs of sentences: any label."""

    kept: ClassVar = {"text": load_tokeniser, "labels": Labels.load}
    counted: ClassVar = "texts"
    settings: ClassifySettings
    task: Classify

    def asked(self) -> Classify:
        text, labels = self.vocabularies["text"], self.vocabularies["labels"]
        kind, head, start = self.settings.model.kind, self.settings.head, self.settings.start
        wanted = self.settings.model.model_dump(exclude={"kind"})
        marks = marks_of(text) if kind == "bert" else None
        size = text.size if marks is None else marks.size
        encoder = build_model(kind, wanted if kind == "elmo" else {**wanted, "size": size})
        model = Headed(
            encoder,
            labels.size,
            pooling=head.pooling,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora:
            add_lora(encoder, start.lora)
        if marks is not None:
            marked = Marked(text, marks.start, marks.end, segments=wanted["segments"] > 1)
            return Classify(model, marked, labels)
        ways = {"han": BySentence, "elmo": Spelled}
        return Classify(model, ways.get(kind, Plain)(text), labels)

    @classmethod
    def settled(cls, settings: Settings) -> Settings:
        """With the model and the vocabulary of the run that it starts from."""
        return inherited(settings)

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        labels = Labels.learn(record["label"] for record in corpus.read("train"))
        if isinstance(settings, ClassifySettings) and settings.start.run is not None:
            text = load_tokeniser(Path(settings.start.run) / "text.json")
            return {"text": text, "labels": labels}
        fields = ["text", "pair"] if "pair" in next(corpus.read("train"), {}) else ["text"]
        return {"text": vocabulary(settings.text, corpus, *fields), "labels": labels}

    def inherit(self) -> None:
        """The encoder of the run that it starts from; that one's heads are left behind."""
        if self.settings.start.run is not None:
            encoder_weights(self.task.model.encoder, Path(self.settings.start.run))

    def groups(self) -> list[dict[str, Any]]:
        return layered(self.model, self.settings) or super().groups()

    def batches(self, corpus: Corpus) -> Batches:
        """Texts of about equal length together; the labels of dev and test are looked at first."""
        train, longest = self.settings.train, self.longest
        ids = not isinstance(self.task.inputs, Spelled)  # else rows hold words
        for split in set(corpus.splits) - {"train"}:  # whose labels these are
            for number, record in enumerate(corpus.read(split)):
                if record["label"] not in self.task.labels.numbers:
                    self.task.labels.number(record["label"], place(corpus, split, number))

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            return self.task.pairs(records, longest)

        return Batches(
            examples(lambda: corpus.read("train"), pairs, ["text"], self.settings, packed=ids),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    @property
    def longest(self) -> int:
        """Tokens of text, at most; the marks need places, too."""
        context = getattr(self.settings.model, "context", math.inf)
        return int(min(self.settings.train.longest, context - MARKS))

    def loss(self, batch: Labelled, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch, self.settings.train.label_smoothing)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(list(self.task.pairs(records, self.longest)))

    def measured(self, metric: str, records: Sequence[Record]) -> float:
        return float(self.rate(records, self.predict(records))[metric])

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """Accuracy and macro F1 in percent, and the loss of a text."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        loss = self.likelihood(records)
        found = self.rate(records, self.predict(records, told))
        return {**found, "loss": loss.total.item() / loss.tokens, "texts": len(records)}

    def rate(self, records: Sequence[Record], verdicts: Sequence[Verdict]) -> dict[str, Any]:
        said, true = [one.label for one in verdicts], [record["label"] for record in records]
        return {"accuracy": 100 * accuracy(said, true), "f1": 100 * macro_f1(said, true)}

    def predict(self, records: Sequence[Record], told: Told | None = None) -> list[Verdict]:
        """What each record's text is taken for."""
        return self.task.verdicts(records, self.longest, told)

    def __call__(self, text: str, pair: str | None = None) -> Verdict:
        """What one text, or two, are taken for."""
        return self.predict([{"text": text} if pair is None else {"text": text, "pair": pair}])[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:  # noqa: ARG002
        """One label for each."""
        records = records_of(texts)
        return [
            Reply(one.label, {**record, "label": one.label, "probabilities": one.probabilities})
            for record, one in zip(records, self.predict(records), strict=True)
        ]


def records_of(texts: Sequence[str]) -> list[Record]:
    """One text each, or two with a tab between them."""
    return [dict(zip(("text", "pair"), text.split("\t"), strict=False)) for text in texts]
