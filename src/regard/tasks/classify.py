"""Classification: a text, or two, into one of some classes; any encoder with a head on it.

b: texts   c: classes
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.batching.example import Example
from regard.layers.output_heads import ClassifierHead, Pooling, build_pooling
from regard.tasks.headed import EncoderTask, EncoderWithHead
from regard.tasks.inputs import CharacterInputs, Inputs, SentenceInputs, split_rows
from regard.tasks.loss import Loss
from regard.tasks.translate import RECORDS_PER_CHUNK
from regard.text.labels import Labels


@dataclass(frozen=True)
class ClassifyBatch:
    """Texts as their encoder wants them, and the class of each."""

    indices: Int[Tensor, " b"]  # which texts these are
    inputs: dict[str, Tensor]
    labels: Int[Tensor, " b"]


class ClassPrediction(NamedTuple):
    """The likeliest class, and how likely each is."""

    label: str
    probabilities: dict[str, float]


class WeightedSentence(NamedTuple):
    """A sentence: how much it was looked at, its tokens, and how much each of them was."""

    weight: float
    tokens: list[str]
    weights: list[float]


class EncoderClassifier(EncoderWithHead):
    """Classes from the encoder's pooled vector, or from states pooled here."""

    def __init__(
        self,
        encoder: Any,
        classes: int,
        *,
        pooling: Pooling | None = None,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        pooled_width: int | None = encoder.pooled_width
        if pooled_width is None and pooling is None:
            pooling = "attention"  # the encoder has no vector of the whole
        self.pooling = None if pooling is None else build_pooling(pooling, encoder.width)
        width: int = encoder.width if pooling is not None or pooled_width is None else pooled_width
        self.head = ClassifierHead(width, classes, hidden_dim=hidden_dim, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b c"]:
        encoded = self.encoder.encode(**inputs)
        pooled = (
            encoded.pooled if self.pooling is None else self.pooling(encoded.states, encoded.valid)
        )
        return self.head(pooled)


class ClassifyTask(EncoderTask):
    """A model with a head, how it reads a text, and the names of its classes."""

    fields = ("text", "label")

    def __init__(self, model: EncoderClassifier, inputs: Inputs, labels: Labels):
        self.model, self.inputs, self.labels = model, inputs, labels
        self.can_pack = not isinstance(inputs, CharacterInputs)

    def examples(
        self, records: Iterable[Mapping[str, str]], max_tokens: int = 256
    ) -> Iterator[Example]:
        """Texts as ids, one by one; of longer ones the end is cut off."""
        stream = enumerate(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            rows = self.inputs.rows([record for _, record in chunk], max_tokens)
            for (index, record), row in zip(chunk, rows, strict=True):
                label = self.labels.index(record["label"], f"record {index + 1}")
                yield Example(index, row, [label])

    def collate(self, examples: Sequence[Example]) -> ClassifyBatch:
        return ClassifyBatch(
            torch.tensor([example.index for example in examples]),
            self.inputs.tensors([example.source for example in examples]),
            torch.tensor([example.target[0] for example in examples]),
        )

    def loss(self, batch: ClassifyBatch, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)
        total = F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=smoothing)
        return Loss(total, len(batch.labels))

    @torch.no_grad()
    def predict(
        self,
        records: Sequence[Mapping[str, str]],
        max_tokens: int = 256,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[ClassPrediction]:
        """What the model takes each text for; labels in the records are not looked at."""
        self.model.eval()
        rows = self.inputs.rows(records, max_tokens) if records else []
        predictions: list[ClassPrediction] = [ClassPrediction("", {})] * len(rows)
        for batch in self.iterate_by_length([Example(n, row, [0]) for n, row in enumerate(rows)]):
            for index, logits in zip(batch.indices.tolist(), self.model(batch.inputs), strict=True):
                probabilities = dict(
                    zip(self.labels.names, logits.softmax(-1).tolist(), strict=True)
                )
                predictions[index] = ClassPrediction(
                    max(probabilities, key=probabilities.__getitem__), probabilities
                )
            if on_progress is not None:
                on_progress(len(batch.indices))
        return predictions

    def attention_weights(
        self, record: Mapping[str, str], max_tokens: int = 256
    ) -> dict[str, Tensor]:
        """Every weight that was paid while the text was read, by the name of the attention."""
        return self.observed_weights(self.inputs.tensors(self.inputs.rows([record], max_tokens)))

    def weighted_sentences(
        self, record: Mapping[str, str], max_tokens: int = 256
    ) -> list[WeightedSentence]:
        """What the verdict rests on: sentences with their words, or one part that is the text.

        Of a transformer's attentions it is what the last layer's first position looked at, in the
        mean of its heads; of several hops, their mean.
        """
        [row] = self.inputs.rows([record], max_tokens)
        recorded = self.attention_weights(record, max_tokens)
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
