"""Tagging of entities in a sentence, or of the slots and the intent of a request.

    loss = -log p(tags | words) - log p(label | words)

A CRF or independent words give p(tags | words); only `understand` has a label.
b: sentences   w: words
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.batching.example import padded
from regard.data.corpus import Record
from regard.data.tag_schemes import OUTSIDE, TagScheme, TagSpan, convert_tags, spans_from_tags
from regard.errors import InputError
from regard.files import JsonObject
from regard.layers.encoder_states import EncoderStates
from regard.metrics.entities import ENTITY_SIGNATURE, entity_scores
from regard.models.protocols import Encoder
from regard.tasks.base import InputField, Metrics, Prediction, ProgressCallback
from regard.tasks.encoding import EncoderTask
from regard.tasks.exportable import ExportableHead, check_without_lora, output_layer
from regard.tasks.loss import Loss
from regard.tasks.tag import view
from regard.tasks.tag.inputs import AnyWordInputs, SubwordInputs, WordRow
from regard.tasks.tag.model import SequenceTagger, TagLogits
from regard.tasks.tag.words import Word, WordSplitter, whitespace_words
from regard.tasks.text_vectors import SPECIAL_TOKEN_COUNT, TextVectorOptions, embed_rows
from regard.text.labels import Labels
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

IGNORE_INDEX = -100  # label that is not in the training data; it has no loss
MAX_REPORTED_LABELS = 12  # with more labels, only the overall F1 is reported


@dataclass(frozen=True)
class TagExample:
    """One sentence: its row, the tag of each word, and its label if the task has labels."""

    index: int
    row: WordRow  # ids, or words if the encoder reads characters
    tags: Sequence[int]
    label: int | None = None

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.row), len(self.tags) + (self.label is not None)


@dataclass(frozen=True)
class TagBatch:
    """Inputs of an encoder, with the tags and the label of each sentence."""

    indices: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    tags: Int[Tensor, "b w"]
    labels: Int[Tensor, " b"]


@dataclass(frozen=True)
class TagPrediction(Prediction):
    """The words of a sentence with their BIO tags, and its label with its probability.

    `text` is the sentence with its spans in brackets: `[Ada Lovelace](person) wrote to ...`
    `source` is the sentence as it was given, which `positions` of words refer to.
    `span_probabilities` are those of `tag_spans`.
    """

    words: Sequence[str] = ()
    tags: Sequence[str] = ()
    label: str | None = None
    probability: float | None = None
    source: str = ""
    positions: Sequence[tuple[int, int]] = ()
    span_probabilities: Sequence[float] = ()

    @property
    def tag_spans(self) -> list[TagSpan]:
        return spans_from_tags(self.tags)

    @property
    def spans(self) -> tuple[tuple[str, str], ...]:
        return tuple(labeled_parts(self.words, self.tags, self.label))

    def as_dict(self) -> JsonObject:
        spans: list[JsonObject] = []
        for span, probability in zip(self.tag_spans, self.span_probabilities, strict=True):
            start, end = self.positions[span.start][0], self.positions[span.end - 1][1]
            characters = {"label": span.label, "start": start, "end": end}
            spans.append({**characters, "text": self.source[start:end], "probability": probability})
        fields: JsonObject = {
            "tokens": list(self.words),
            "tags": list(self.tags),
            "spans": spans,
            "sentence": self.source,
        }
        if self.label is not None:
            fields |= {"intent": self.label, "probability": self.probability}
        return fields


class TagTask(EncoderTask[TagExample, TagBatch, SequenceTagger]):
    """A tagger, the inputs that it reads, and the names of its tags; `labels` are of sentences."""

    name: ClassVar = "tag"
    input_fields = (InputField("text", "Sentence"),)
    unit: ClassVar = "words"
    example_unit: ClassVar = "sentences"

    def __init__(
        self,
        model: SequenceTagger,
        word_inputs: AnyWordInputs,
        tags: Labels,
        labels: Labels | None = None,
        *,
        splitter: WordSplitter | None = None,
        scheme: TagScheme = "bio",
        max_tokens: int = 256,
        label_smoothing: float = 0.0,
        layer_decay: float = 1.0,
        vector_options: TextVectorOptions | None = None,
    ):
        super().__init__(
            model,
            max_tokens=max_tokens,
            label_smoothing=label_smoothing,
            layer_decay=layer_decay,
            vector_options=vector_options,
        )
        self.word_inputs, self.tags, self.labels = word_inputs, tags, labels
        self.splitter = splitter or WordSplitter()
        self.scheme: TagScheme = scheme

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[TagExample]:
        """Yield sentences, truncated to `max_tokens` tokens.

        A tag that is not in the training data counts as outside; such a label has no loss.
        """
        outside_id = self.tags.indices.get(OUTSIDE, 0)
        for index, record in enumerate(records):
            row = self.word_inputs.row(record["text"].split(), self.max_tokens)
            tags = convert_tags(record["tags"].split(), "bio", self.scheme)
            tags = tags[: self.word_inputs.word_count(row)]
            tag_ids = [self.tags.indices.get(tag, outside_id) for tag in tags]
            yield TagExample(index, row, tag_ids, self.label_id(record))

    def label_id(self, record: Record) -> int | None:
        """Return the id of the label, or None if the task has no labels."""
        if self.labels is None:
            return None
        return self.labels.indices.get(split_labels(record["label"])[0], IGNORE_INDEX)

    def collate(self, examples: Sequence[TagExample]) -> TagBatch:
        tags, _ = padded([[*example.tags, 0] for example in examples])
        labels = [IGNORE_INDEX if e.label is None else e.label for e in examples]
        return TagBatch(
            torch.tensor([example.index for example in examples]),
            self.word_inputs.tensors([example.row for example in examples]),
            tags[:, : max(1, tags.shape[1] - 1)],
            torch.tensor(labels),
        )

    def cross_entropy(self, batch: TagBatch, smoothing: float = 0.0) -> Loss:
        """Return the loss of the sentences, counted by words; a CRF has no label smoothing."""
        logits: TagLogits = self.model(batch.inputs)
        if self.model.crf is not None:
            total = -self.model.crf(logits.tags, batch.tags, logits.valid).sum()
        else:
            total = F.cross_entropy(
                logits.tags[logits.valid],
                batch.tags[logits.valid],
                reduction="sum",
                label_smoothing=smoothing,
            )
        if logits.label is not None:
            total = total + F.cross_entropy(
                logits.label, batch.labels, reduction="sum", label_smoothing=smoothing
            )
        return Loss(total, max(1, int(logits.valid.sum())))

    # --- inference

    def parse(self, line: str, location: str) -> Record:  # noqa: ARG002 - every line is valid
        return {"text": line}

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[TagPrediction]:
        """Return the tags of each sentence; words after `max_tokens` tokens are outside."""
        self.model.eval()
        sentences = [self.words(record) for record in records]
        rows = [self.word_inputs.row([w.text for w in s], self.max_tokens) for s in sentences]
        predictions = [TagPrediction("")] * len(rows)
        label = None if self.labels is None else 0
        examples = [TagExample(index, row, [0], label) for index, row in enumerate(rows)]
        for batch in self.iterate_by_length(examples):
            logits = self.model(batch.inputs)
            best = self.model.best_tags(logits).tolist()
            for batch_row, index in enumerate(batch.indices.tolist()):
                words, count = sentences[index], self.word_inputs.word_count(rows[index])
                tag_ids = best[batch_row][:count]
                tags = [self.tags.names[tag_id] for tag_id in tag_ids]
                tags = convert_tags(tags, self.scheme, "bio") + [OUTSIDE] * (len(words) - count)
                spans = [(span.start, span.end) for span in spans_from_tags(tags)]
                label, probability = self.sentence_label(logits, batch_row)
                predictions[index] = TagPrediction(
                    bracketed_text([word.text for word in words], tags, label),
                    [word.text for word in words],
                    tags,
                    label,
                    probability,
                    records[index]["text"],
                    [(word.start, word.end) for word in words],
                    self.model.span_probabilities(logits, batch_row, tag_ids, spans),
                )
            if on_progress is not None:
                on_progress(len(batch.indices))
        return predictions

    def words(self, record: Record) -> list[Word]:
        """Return the words of a record; text without tags is split as the training data is."""
        if "tags" in record:
            return whitespace_words(record["text"])
        return self.splitter.split(record["text"])

    def sentence_label(self, logits: TagLogits, row: int) -> tuple[str, float] | tuple[None, None]:
        """Return the likeliest label of a sentence and its probability, if there are labels."""
        if logits.label is None or self.labels is None:
            return None, None
        probability, label_id = logits.label[row].softmax(-1).max(-1)
        return self.labels.names[int(label_id)], probability.item()

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """Return one vector for each text, of its states in the encoder."""
        limit = self.vector_options.max_tokens
        sentences = [[word.text for word in self.splitter.split(text)] for text in texts]
        rows = [self.word_inputs.row(sentence, limit) for sentence in sentences]
        return embed_rows(self.model.encoder, rows, self.encoder_tensors, self.vector_options)

    def encoder_tensors(self, rows: Sequence[Sequence[int] | Sequence[str]]) -> dict[str, Tensor]:
        """Return the inputs of the encoder, without the marks of words."""
        tensors = self.word_inputs.tensors(rows)
        return {name: tensor for name, tensor in tensors.items() if name != "begins"}

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return F1, precision and recall of spans in percent, and F1 by label if there are few."""
        tagged = cast("Sequence[TagPrediction]", predictions)
        references = [spans_from_tags(record["tags"].split()) for record in records]
        overall, by_label = entity_scores([item.tag_spans for item in tagged], references)
        metrics: Metrics = {
            "f1": 100 * overall.f1,
            "precision": 100 * overall.precision,
            "recall": 100 * overall.recall,
        }
        label_f1 = {f"f1_{name}": 100 * item.f1 for name, item in by_label.items() if item.support}
        if len(label_f1) <= MAX_REPORTED_LABELS:
            metrics |= label_f1
        return {**metrics, "f1_signature": ENTITY_SIGNATURE}

    # --- inspection

    def attention_weights(self, text: str) -> dict[str, Tensor]:
        """Return all attention weights for a sentence, by the name of the attention."""
        words = [word.text for word in self.splitter.split(text)]
        row = self.word_inputs.row(words, self.max_tokens)
        return self.observed_weights(self.word_inputs.tensors([row]))

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.tag_map(self, record["text"])

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_tags(self, record["text"], surface)

    def exportable_model(self) -> Encoder[EncoderStates]:
        check_without_lora(self.model.encoder)
        return self.model.encoder

    def exportable_head(self) -> ExportableHead:
        """Return the head of words; the first token of a word has its tag."""
        if self.model.crf is not None:
            raise InputError(
                "head.crf = true cannot be exported: transformers has no CRF; train with "
                "head.crf=false"
            )
        if self.labels is not None:
            raise InputError("two heads, for tags and for labels, cannot be exported together")
        if not isinstance(self.word_inputs, SubwordInputs) or not self.word_inputs.splits_at_spaces:
            raise InputError(
                "this tokenizer cannot be exported: it reads a word alone unlike in a sentence; "
                "train with text.kind=wordpiece"
            )
        output, limit = output_layer(self.model.head), self.max_tokens + SPECIAL_TOKEN_COUNT
        return ExportableHead("tokens", output.weight, output.bias, tuple(self.tags.names), limit)


class UnderstandTask(TagTask):
    """A tagger of slots that also predicts the intent of a request, its label."""

    name: ClassVar = "understand"

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return F1 of slots, and the percentages of correct intents and of correct sentences."""
        slots = super().metrics(records, predictions)
        pairs = list(zip(cast("Sequence[TagPrediction]", predictions), records, strict=True))
        intent_hits = [p.label in split_labels(record["label"]) for p, record in pairs]
        sentence_hits = [
            is_hit and list(prediction.tags) == record["tags"].split()
            for is_hit, (prediction, record) in zip(intent_hits, pairs, strict=True)
        ]
        return {
            "slot_f1": slots["f1"],
            "intent_accuracy": 100 * sum(intent_hits) / len(intent_hits),
            "sentence_accuracy": 100 * sum(sentence_hits) / len(sentence_hits),
            "slot_precision": slots["precision"],
            "slot_recall": slots["recall"],
            "slot_f1_signature": slots["f1_signature"],
        }


def split_labels(label: str) -> list[str]:
    """Return the labels of a sentence that has several, as ATIS writes them: `a#b`.

    The model learns the first; a prediction of any of them is correct.
    """
    return label.split("#")


def bracketed_text(words: Sequence[str], tags: Sequence[str], label: str | None) -> str:
    """Return the label, if any, and the words with spans in brackets."""
    return " ".join(
        f"[{part}]({name})" if name else part for part, name in labeled_parts(words, tags, label)
    )


def labeled_parts(
    words: Sequence[str], tags: Sequence[str], label: str | None
) -> Iterator[tuple[str, str]]:
    """Yield the label if there is one, then spans with their label and words without one."""
    position = 0
    if label is not None:
        yield f"{label}:", ""
    for span in spans_from_tags(tags):
        yield from ((word, "") for word in words[position : span.start])
        yield " ".join(words[span.start : span.end]), span.label
        position = span.end
    yield from ((word, "") for word in words[position:])
