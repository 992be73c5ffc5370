"""Runs that name stretches of words: `tag` (entities), and `understand` (slots and an intent)."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from regard.config.settings import Settings, TagSettings, UnderstandSettings
from regard.data.corpus import Corpus, Record
from regard.data.tag_schemes import convert_tags, spans_from_tags
from regard.layers.lora import add_lora
from regard.metrics.entities import ENTITY_SIGNATURE, entity_scores
from regard.tasks.tag import SequenceTagger, TagPrediction, TagTask, split_labels
from regard.tasks.tag_inputs import (
    SubwordInputs,
    WordAndCharacterInputs,
    WordCharacterInputs,
    WordInputs,
)
from regard.text.labels import Labels
from regard.text.special_ids import AnyTokenizer, load_tokenizer, special_ids
from regard.train.headed import EncoderRun
from regard.train.run import Prediction, ProgressCallback


class TagRun(EncoderRun):
    """Entities: stretches of words with a name."""

    vocabulary_loaders: ClassVar = {"text": load_tokenizer, "tags": Labels.load}
    unit: ClassVar = "words"
    example_unit: ClassVar = "sentences"
    special_token_count: ClassVar = 2  # START and END
    settings: TagSettings | UnderstandSettings
    task: TagTask

    def build_task(self) -> TagTask:
        tokenizer, tags = self.vocabularies["text"], self.vocabularies["tags"]
        labels: Labels | None = self.vocabularies.get("labels")
        head, start = self.settings.head, self.settings.start
        encoder = self.build_encoder(tokenizer)
        model = SequenceTagger(
            encoder,
            tags.names,
            0 if labels is None else labels.size,
            scheme=head.scheme,
            crf=head.crf,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora_rank:
            add_lora(encoder, start.lora_rank)
        return TagTask(
            model,
            build_word_inputs(self.settings.model, tokenizer),
            tags,
            labels,
            scheme=head.scheme,
        )

    @classmethod
    def build_vocabularies(cls, settings: Any, corpus: Corpus) -> dict[str, Any]:
        scheme = settings.head.scheme
        tag_rows = (record["tags"].split() for record in corpus.read("train"))
        tags = Labels.from_data(tag for row in tag_rows for tag in convert_tags(row, "bio", scheme))
        return {"text": cls.build_tokenizer(settings, corpus, "text"), "tags": tags}

    def metrics(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        return self.prediction_metrics(
            records, self.predict([record["text"] for record in records], on_progress)
        )

    def prediction_metrics(
        self, records: Sequence[Record], predictions: Sequence[TagPrediction]
    ) -> dict[str, float | str]:
        """F1, precision and recall of stretches."""
        reference_spans = [spans_from_tags(record["tags"].split()) for record in records]
        overall, by_name = entity_scores([item.spans for item in predictions], reference_spans)
        metrics: dict[str, float | str] = {
            "f1": 100 * overall.f1,
            "precision": 100 * overall.precision,
            "recall": 100 * overall.recall,
        }
        f1_by_label = {
            f"f1_{name}": 100 * item.f1 for name, item in by_name.items() if item.support
        }
        return {
            **metrics,
            **(f1_by_label if len(f1_by_label) <= MAX_REPORTED_LABELS else {}),
            "f1_signature": ENTITY_SIGNATURE,
        }

    def predict(
        self, texts: Sequence[str], on_progress: ProgressCallback | None = None
    ) -> list[TagPrediction]:
        """The words of each text with their tags."""
        return self.task.predict(texts, self.max_tokens, on_progress)

    def __call__(self, text: str) -> TagPrediction:
        return self.predict([text])[0]

    def predict_lines(
        self,
        lines: Sequence[str],
        location_format: str = "text {}",  # noqa: ARG002
    ) -> list[Prediction]:
        """The text with its stretches in brackets, each with its name."""
        return [
            Prediction(
                bracketed(prediction),
                prediction_data(prediction),
                tuple(prediction_spans(prediction)),
            )
            for prediction in self.predict(lines)
        ]


class UnderstandRun(TagRun):
    """What somebody wants, and the words that say with what."""

    vocabulary_loaders: ClassVar = {
        "text": load_tokenizer,
        "tags": Labels.load,
        "labels": Labels.load,
    }

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        labels = Labels.from_data(
            split_labels(record["label"])[0] for record in corpus.read("train")
        )
        return {**super().build_vocabularies(settings, corpus), "labels": labels}

    def prediction_metrics(
        self, records: Sequence[Record], predictions: Sequence[TagPrediction]
    ) -> dict[str, float | str]:
        """Slots by F1, intents by accuracy, and sentences of which all is right."""
        slots = super().prediction_metrics(records, predictions)
        intent_hits = [
            prediction.label in split_labels(record["label"])
            for prediction, record in zip(predictions, records, strict=True)
        ]
        sentence_hits = [
            intent_hit and prediction.tags == record["tags"].split()
            for intent_hit, prediction, record in zip(
                intent_hits, predictions, records, strict=True
            )
        ]
        return {
            "slot_f1": slots["f1"],
            "intent": 100 * sum(intent_hits) / len(intent_hits),
            "sentence": 100 * sum(sentence_hits) / len(sentence_hits),
            "slot_precision": slots["precision"],
            "slot_recall": slots["recall"],
            "slot_f1_signature": slots["f1_signature"],
        }


MAX_REPORTED_LABELS = 12  # names that are told one by one


def build_word_inputs(model: Any, tokenizer: AnyTokenizer) -> WordInputs:
    """How the encoder of these settings reads words."""
    match model.kind:
        case "bert":
            specials = special_ids(tokenizer)
            return SubwordInputs(
                tokenizer, specials.start, specials.end, segments=model.segments > 1
            )
        case "elmo":
            return WordCharacterInputs(tokenizer)
        case "bilstm_crf":
            return WordAndCharacterInputs(tokenizer)
        case _:
            return SubwordInputs(tokenizer)


def bracketed(prediction: TagPrediction) -> str:
    """`[Ada Lovelace](person) wrote to …`, and before it the label, if there is one."""
    return " ".join(
        f"[{text}]({name})" if name else text for text, name in prediction_spans(prediction)
    )


def prediction_spans(prediction: TagPrediction) -> Iterator[tuple[str, str]]:
    """The label, if there is one, and the text: stretches with their names, words without."""
    position = 0
    if prediction.label is not None:
        yield f"{prediction.label}:", ""
    for span in prediction.spans:
        yield from ((word, "") for word in prediction.words[position : span.start])
        yield " ".join(prediction.words[span.start : span.end]), span.label
        position = span.end
    yield from ((word, "") for word in prediction.words[position:])


def prediction_data(prediction: TagPrediction) -> dict[str, Any]:
    data: dict[str, Any] = {"tokens": prediction.words, "tags": prediction.tags}
    data["spans"] = [
        {**span._asdict(), "text": " ".join(prediction.words[span.start : span.end])}
        for span in prediction.spans
    ]
    if prediction.label is not None:
        data |= {"intent": prediction.label, "probability": prediction.probability}
    return data
