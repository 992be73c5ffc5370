"""Runs that name stretches of words: `tag` (entities), and `understand` (slots and an intent)."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from regard.config.settings import Settings, TagSettings, UnderstandSettings
from regard.corpora.corpus import Corpus, Record
from regard.corpora.tags import converted, spans
from regard.encode.lora import add_lora
from regard.metric.entities import SIGNATURE, entities
from regard.tasks.tag import Tag, Tagged, Tagger, labels_of
from regard.tasks.tag_inputs import Both, Letters, Pieces, Words
from regard.text.labels import Labels
from regard.text.marks import AnyTokeniser, load_tokeniser, marks_of
from regard.train.headed import HeadedRun
from regard.train.run import Reply, Told


class TagRun(HeadedRun):
    """Entities: stretches of words with a name."""

    kept: ClassVar = {"text": load_tokeniser, "tags": Labels.load}
    counted: ClassVar = "words"
    scored: ClassVar = "sentences"
    marks: ClassVar = 2  # START and END
    settings: TagSettings | UnderstandSettings
    task: Tag

    def asked(self) -> Tag:
        text, tags = self.vocabularies["text"], self.vocabularies["tags"]
        labels: Labels | None = self.vocabularies.get("labels")
        head, start = self.settings.head, self.settings.start
        encoder = self.encoder(text)
        model = Tagger(
            encoder,
            tags.names,
            0 if labels is None else labels.size,
            scheme=head.scheme,
            crf=head.crf,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora:
            add_lora(encoder, start.lora)
        return Tag(model, words_of(self.settings.model, text), tags, labels, scheme=head.scheme)

    @classmethod
    def learn(cls, settings: Any, corpus: Corpus) -> dict[str, Any]:
        scheme = settings.head.scheme
        seen = (record["tags"].split() for record in corpus.read("train"))
        tags = Labels.learn(tag for row in seen for tag in converted(row, "bio", scheme))
        return {"text": cls.tokeniser(settings, corpus, "text"), "tags": tags}

    def rate(self, records: Sequence[Record], told: Told | None = None) -> dict[str, float | str]:
        return self.compared(records, self.predict([one["text"] for one in records], told))

    def compared(
        self, records: Sequence[Record], found: Sequence[Tagged]
    ) -> dict[str, float | str]:
        """F1, precision and recall of stretches."""
        true = [spans(record["tags"].split()) for record in records]
        whole, by_name = entities([one.spans for one in found], true)
        told: dict[str, float | str] = {
            "f1": 100 * whole.f1,
            "precision": 100 * whole.precision,
            "recall": 100 * whole.recall,
        }
        each = {f"f1_{name}": 100 * one.f1 for name, one in by_name.items() if one.support}
        return {**told, **(each if len(each) <= SHOWN else {}), "f1_signature": SIGNATURE}

    def predict(self, texts: Sequence[str], told: Told | None = None) -> list[Tagged]:
        """The words of each text with their tags."""
        return self.task.tagged(texts, self.longest, told)

    def __call__(self, text: str) -> Tagged:
        return self.predict([text])[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:  # noqa: ARG002
        """The text with its stretches in brackets, each with its name."""
        return [
            Reply(bracketed(one), facts_of(one), tuple(parts_of(one)))
            for one in self.predict(texts)
        ]


class UnderstandRun(TagRun):
    """What somebody wants, and the words that say with what."""

    kept: ClassVar = {"text": load_tokeniser, "tags": Labels.load, "labels": Labels.load}

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        labels = Labels.learn(labels_of(record["label"])[0] for record in corpus.read("train"))
        return {**super().learn(settings, corpus), "labels": labels}

    def compared(
        self, records: Sequence[Record], found: Sequence[Tagged]
    ) -> dict[str, float | str]:
        """Slots by F1, intents by accuracy, and sentences of which all is right."""
        slots = super().compared(records, found)
        right = [
            mine.label in labels_of(record["label"])
            for mine, record in zip(found, records, strict=True)
        ]
        whole = [
            known and mine.tags == record["tags"].split()
            for known, mine, record in zip(right, found, records, strict=True)
        ]
        return {
            "slot_f1": slots["f1"],
            "intent": 100 * sum(right) / len(right),
            "sentence": 100 * sum(whole) / len(whole),
            "slot_precision": slots["precision"],
            "slot_recall": slots["recall"],
            "slot_f1_signature": slots["f1_signature"],
        }


SHOWN = 12  # names that are told one by one


def words_of(model: Any, text: AnyTokeniser) -> Words:
    """How the encoder of these settings reads words."""
    match model.kind:
        case "bert":
            marks = marks_of(text)
            return Pieces(text, marks.start, marks.end, segments=model.segments > 1)
        case "elmo":
            return Letters(text)
        case "bilstm_crf":
            return Both(text)
        case _:
            return Pieces(text)


def bracketed(found: Tagged) -> str:
    """`[Ada Lovelace](person) wrote to …`, and before it the label, if there is one."""
    return " ".join(f"[{text}]({name})" if name else text for text, name in parts_of(found))


def parts_of(found: Tagged) -> Iterator[tuple[str, str]]:
    """The label, if there is one, and the text: stretches with their names, words without."""
    at = 0
    if found.label is not None:
        yield f"{found.label}:", ""
    for span in found.spans:
        yield from ((word, "") for word in found.words[at : span.start])
        yield " ".join(found.words[span.start : span.end]), span.label
        at = span.end
    yield from ((word, "") for word in found.words[at:])


def facts_of(found: Tagged) -> dict[str, Any]:
    told: dict[str, Any] = {"tokens": found.words, "tags": found.tags}
    told["spans"] = [
        {**span._asdict(), "text": " ".join(found.words[span.start : span.end])}
        for span in found.spans
    ]
    if found.label is not None:
        told |= {"intent": found.label, "probability": found.probability}
    return told
