"""Shared parts of tasks that predict one class of an input: `classify` and `image`.

b: inputs   c: classes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.batching.example import SizedT
from regard.config.encoder_head import HeadConfig
from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record, location
from regard.files import JsonObject
from regard.layers.encoder_states import EncoderStates
from regard.layers.output_heads import ClassifierHead, Pooling, build_pooling
from regard.metrics.classification import accuracy, macro_f1
from regard.models.protocols import Encoder
from regard.tasks.base import Metrics, Prediction
from regard.tasks.comparison import Comparison
from regard.tasks.encoding import EncoderModel, EncoderTask
from regard.tasks.loss import Loss
from regard.tasks.text_vectors import TextVectorOptions
from regard.text.labels import Labels

StateEncoderT = TypeVar("StateEncoderT", bound=Encoder[EncoderStates])


class EncoderClassifier(EncoderModel[StateEncoderT]):
    """Class logits from the pooled vector of an encoder, or from its states pooled here."""

    def __init__(
        self,
        encoder: StateEncoderT,
        classes: int,
        *,
        pooling: Pooling | None = None,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        pooled_width = encoder.pooled_width
        if pooled_width is None and pooling is None:
            pooling = "attention"  # the encoder has no pooled vector
        self.pooling = None if pooling is None else build_pooling(pooling, encoder.width)
        width: int = encoder.width if pooling is not None or pooled_width is None else pooled_width
        self.head = ClassifierHead(width, classes, hidden_dim=hidden_dim, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b c"]:
        encoded = self.encoder.encode(**inputs)
        pooled = (
            encoded.pooled if self.pooling is None else self.pooling(encoded.states, encoded.valid)
        )
        return self.head(pooled)


def build_classifier(
    encoder: StateEncoderT, classes: int, head: HeadConfig, *, frozen: bool
) -> EncoderClassifier[StateEncoderT]:
    """Return the encoder with the head that the settings describe."""
    return EncoderClassifier(
        encoder,
        classes,
        pooling=head.pooling,
        hidden_dim=head.hidden_dim,
        dropout=head.dropout,
        frozen=frozen,
    )


@dataclass(frozen=True)
class ClassBatch:
    """The inputs of an encoder, and the class of each."""

    indices: Int[Tensor, " b"]  # positions in the data
    inputs: dict[str, Tensor]
    labels: Int[Tensor, " b"]


@dataclass(frozen=True)
class ClassPrediction(Prediction):
    """The likeliest class, and the probability of each; `text` is the name of the class."""

    probabilities: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.text

    def as_dict(self) -> JsonObject:
        return {"label": self.label, "probabilities": self.probabilities}


class EncoderClassifierTask(
    EncoderTask[SizedT, ClassBatch, EncoderClassifier[StateEncoderT]],
    Generic[SizedT, StateEncoderT],
):
    """A classifier and the names of its classes; subclasses read the inputs."""

    def __init__(
        self,
        model: EncoderClassifier[StateEncoderT],
        labels: Labels,
        *,
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
        self.labels = labels

    def cross_entropy(self, batch: ClassBatch, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)
        total = F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=smoothing)
        return Loss(total, len(batch.labels))

    def check_labels(self, corpus: Corpus) -> None:
        """Raise an error if another split has a label that the training data lacks."""
        for split in corpus.splits:
            if split != "train":
                for index, record in enumerate(corpus.read(split)):
                    if record["label"] not in self.labels.indices:
                        self.labels.index(record["label"], location(corpus, split, index))

    def to_prediction(self, logits: Float[Tensor, " c"]) -> ClassPrediction:
        """Convert the logits of one input."""
        probabilities = dict(zip(self.labels.names, logits.softmax(-1).tolist(), strict=True))
        return ClassPrediction(max(probabilities, key=probabilities.__getitem__), probabilities)

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return accuracy and macro F1 in percent."""
        predicted = [prediction.text for prediction in predictions]
        labels = [record["label"] for record in records]
        return {
            "accuracy": 100 * accuracy(predicted, labels),
            "f1": 100 * macro_f1(predicted, labels),
        }


class ClassifierComparison(Comparison):
    """Compares classifiers, whose losses count inputs and so need no note on tokens."""

    def comparison_notes(self, models: Mapping[str, Settings]) -> list[str]:  # noqa: ARG002
        return []
