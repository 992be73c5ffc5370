"""A run that classifies: a text or two into one of the classes of its data."""

from collections.abc import Sequence
from typing import Any, ClassVar

from regard.batch.batches import Batches
from regard.config.settings import ClassifySettings, Settings
from regard.corpora.corpus import Corpus, Record, place
from regard.encode.lora import add_lora
from regard.metric.classes import accuracy, macro_f1
from regard.tasks.classify import Classify, Judge, Verdict
from regard.tasks.inputs import BySentence, Marked, Plain, Spelled
from regard.text.labels import Labels
from regard.text.marks import load_tokeniser, marks_of
from regard.train.headed import HeadedRun
from regard.train.run import Reply, Told


class ClassifyRun(HeadedRun):
    """Sentiment, topics, pairs of sentences: any label."""

    kept: ClassVar = {"text": load_tokeniser, "labels": Labels.load}
    counted: ClassVar = "texts"
    scored: ClassVar = "texts"
    marks: ClassVar = 3  # of two texts: START, and END twice
    settings: ClassifySettings
    task: Classify

    def asked(self) -> Classify:
        text, labels = self.vocabularies["text"], self.vocabularies["labels"]
        model, head, start = self.settings.model, self.settings.head, self.settings.start
        encoder = self.encoder(text)
        judge = Judge(
            encoder,
            labels.size,
            pooling=head.pooling,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora:
            add_lora(encoder, start.lora)
        if model.kind == "bert":
            marks = marks_of(text)
            marked = Marked(text, marks.start, marks.end, segments=model.segments > 1)
            return Classify(judge, marked, labels)
        ways = {"han": BySentence, "elmo": Spelled}
        return Classify(judge, ways.get(model.kind, Plain)(text), labels)

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        labels = Labels.learn(record["label"] for record in corpus.read("train"))
        fields = ["text", "pair"] if "pair" in next(corpus.read("train"), {}) else ["text"]
        return {"text": cls.tokeniser(settings, corpus, *fields), "labels": labels}

    def batches(self, corpus: Corpus) -> Batches:
        """The labels of dev and test are looked at first."""
        for split in set(corpus.splits) - {"train"}:  # whose labels these are
            for number, record in enumerate(corpus.read(split)):
                if record["label"] not in self.task.labels.numbers:
                    self.task.labels.number(record["label"], place(corpus, split, number))
        return super().batches(corpus)

    def rate(self, records: Sequence[Record], told: Told | None = None) -> dict[str, float | str]:
        """Accuracy and macro F1."""
        said = [one.label for one in self.predict(records, told)]
        true = [record["label"] for record in records]
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
