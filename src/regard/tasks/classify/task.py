"""Classification of texts, or of pairs of texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.errors import InputError
from regard.layers.encoder_states import EncoderStates
from regard.models.protocols import Encoder
from regard.tasks.base import BatchOptions, InputField, ProgressCallback, Readout
from regard.tasks.classify import view
from regard.tasks.encoder_classifier import (
    ClassBatch,
    ClassPrediction,
    EncoderClassifier,
    EncoderClassifierTask,
)
from regard.tasks.encoder_inputs import (
    AnyInputs,
    CharacterInputs,
    InputRow,
    SentenceInputs,
    split_rows,
)
from regard.tasks.exportable import ExportableHead, check_without_lora, output_layer
from regard.tasks.generation import RECORDS_PER_CHUNK
from regard.tasks.text_vectors import SPECIAL_TOKEN_COUNT, TextVectorOptions, embed_rows
from regard.text.labels import Labels
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

COLUMNS = ("text", "pair")  # columns of a line of input, separated by a tab


class WeightedSentence(NamedTuple):
    """A sentence with its attention weight, and its tokens with theirs."""

    weight: float
    tokens: list[str]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class ClassifyExample:
    """The row that the encoder reads, of ids or of words, and the class of a text."""

    index: int
    row: InputRow
    label: int

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.row), 1


TextClassifier = EncoderClassifier[Encoder[EncoderStates]]


class ClassifyTask(EncoderClassifierTask[ClassifyExample, Encoder[EncoderStates]]):
    """A classifier, the inputs that it reads, and the names of its classes."""

    name: ClassVar = "classify"
    input_fields = (
        InputField("text", "Text", "lines"),
        InputField("pair", "Second text, for runs on pairs", "lines", is_required=False),
    )
    unit: ClassVar = "texts"

    def __init__(
        self,
        model: TextClassifier,
        inputs: AnyInputs,
        labels: Labels,
        *,
        max_tokens: int = 256,
        label_smoothing: float = 0.0,
        layer_decay: float = 1.0,
        vector_options: TextVectorOptions | None = None,
    ):
        super().__init__(
            model,
            labels,
            max_tokens=max_tokens,
            label_smoothing=label_smoothing,
            layer_decay=layer_decay,
            vector_options=vector_options,
        )
        self.inputs = inputs
        self.packed = not isinstance(inputs, CharacterInputs)

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[ClassifyExample]:
        """Yield the row and the class of each record."""
        stream = enumerate(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            rows = self.inputs.rows([record for _, record in chunk], self.max_tokens)
            for (index, record), row in zip(chunk, rows, strict=True):
                label = self.labels.index(record["label"], f"record {index + 1}")
                yield ClassifyExample(index, row, label)

    def collate(self, examples: Sequence[ClassifyExample]) -> ClassBatch:
        return ClassBatch(
            torch.tensor([example.index for example in examples]),
            self.inputs.tensors([example.row for example in examples]),
            torch.tensor([example.label for example in examples]),
        )

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[ClassBatch]:
        """Return batches of texts of about equal length, after a check of all labels."""
        self.check_labels(corpus)
        return super().batches(corpus, options)

    # --- inference

    def parse(self, line: str, location: str) -> Record:  # noqa: ARG002 - every line is valid
        """Convert one text, or two that are separated by a tab."""
        return dict(zip(COLUMNS, line.split("\t"), strict=False))

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[ClassPrediction]:
        self.model.eval()
        rows = self.inputs.rows(records, self.max_tokens) if records else []
        predictions = [ClassPrediction("")] * len(rows)
        examples = [ClassifyExample(n, row, 0) for n, row in enumerate(rows)]
        for batch in self.iterate_by_length(examples):
            for index, logits in zip(batch.indices.tolist(), self.model(batch.inputs), strict=True):
                predictions[index] = self.to_prediction(logits)
            if on_progress is not None:
                on_progress(len(batch.indices))
        return predictions

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """Return one vector for each text, of its states in the encoder."""
        records = [{"text": text} for text in texts]
        rows = self.inputs.rows(records, self.vector_options.max_tokens) if texts else []
        return embed_rows(self.model.encoder, rows, self.inputs.tensors, self.vector_options)

    # --- inspection

    def attention_weights(self, record: Mapping[str, str]) -> dict[str, Tensor]:
        """Return all attention weights for a record, by the name of the attention."""
        return self.observed_weights(
            self.inputs.tensors(self.inputs.rows([record], self.max_tokens))
        )

    def weighted_sentences(self, record: Mapping[str, str]) -> list[WeightedSentence]:
        """Return the sentences with their words, or the text as a single part.

        For a transformer, weights are those of the first position in the last layer, averaged over
        heads; for an attention with several hops, their mean.
        """
        [row] = self.inputs.rows([record], self.max_tokens)
        recorded = self.attention_weights(record)
        if len(recorded) == 2 and isinstance(self.inputs, SentenceInputs):
            words, sentences = recorded.values()
            return [
                WeightedSentence(weight, self.inputs.tokens(ids), word_weights[: len(ids)].tolist())
                for weight, ids, word_weights in zip(
                    sentences[0, 0].tolist(), split_rows(row), words[:, 0], strict=True
                )
            ]
        last_weights = list(recorded.values())[-1][0]
        weights = last_weights.mean(0)[0] if last_weights.ndim == 3 else last_weights.mean(0)
        return [WeightedSentence(1.0, self.inputs.tokens(row), weights.tolist())]

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.classification_map(self, record)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_classification(self, record, surface)

    def readout(self, record: Record) -> Readout:
        return view.classification_readout(self, record)

    def exportable_model(self) -> Encoder[EncoderStates]:
        check_without_lora(self.model.encoder)
        return self.model.encoder

    def exportable_head(self) -> ExportableHead:
        if self.model.pooling is not None:
            raise InputError(
                "head.pooling cannot be exported: transformers classifies the vector of BERT's "
                "pooler; train with model.pooler = true and without head.pooling"
            )
        output, limit = output_layer(self.model.head), self.max_tokens + SPECIAL_TOKEN_COUNT
        labels = tuple(self.labels.names)
        return ExportableHead("sequence", output.weight, output.bias, labels, limit)
