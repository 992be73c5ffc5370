"""Pictures by class: an encoder of pictures with a head on it, and what its class token looked at.

b: pictures   c: classes   h: heads
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.batching.example import Example
from regard.batching.pictures import PicturePreprocessor
from regard.data.formats.images import ImageLike
from regard.tasks.classify import ClassPrediction, EncoderClassifier
from regard.tasks.headed import EncoderTask
from regard.tasks.loss import Loss
from regard.text.labels import Labels

PICTURES_PER_BATCH = 256  # pictures that are looked at together, when none is learnt from


@dataclass(frozen=True)
class ImageBatch:
    """Pictures as their encoder wants them, and the class of each."""

    indices: Int[Tensor, " b"]  # which pictures these are
    inputs: dict[str, Tensor]
    labels: Int[Tensor, " b"]


class ImageTask(EncoderTask):
    """A model with a head, how it reads pictures, and the names of its classes."""

    fields = ("picture", "label")

    def __init__(self, model: EncoderClassifier, pictures: PicturePreprocessor, labels: Labels):
        self.model, self.pictures, self.labels = model, pictures, labels

    def examples(
        self, records: Iterable[Mapping[str, Any]], *, load_pictures: bool = True
    ) -> Iterator[Example]:
        """One by one; what is not `read` now is read when its batch is made, each time."""
        for index, record in enumerate(records):
            label = self.labels.index(record["label"], f"record {index + 1}")
            picture = self.pictures.read(record["picture"]) if load_pictures else record["picture"]
            yield Example(index, [picture], [label])

    def collate(self, examples: Sequence[Example]) -> ImageBatch:
        return self.build_batch(examples, self.pictures.to_tensor(self.pixels(examples)))

    def collate_for_training(
        self, examples: Sequence[Example], *, crop: int = 0, flip: bool = False
    ) -> ImageBatch:
        """A batch to learn from: its pictures are moved and mirrored by chance."""
        return self.build_batch(
            examples, self.pictures.augmented(self.pixels(examples), crop=crop, flip=flip)
        )

    def pixels(self, examples: Sequence[Example]) -> list[Any]:
        return [self.pictures.read(example.source[0]) for example in examples]

    def build_batch(
        self, examples: Sequence[Example], pictures: Float[Tensor, "b k h w"]
    ) -> ImageBatch:
        return ImageBatch(
            torch.tensor([example.index for example in examples]),
            {"pictures": pictures},
            torch.tensor([example.target[0] for example in examples]),
        )

    def loss(self, batch: ImageBatch, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)
        total = F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=smoothing)
        return Loss(total, len(batch.labels))

    @torch.no_grad()
    def predict(
        self,
        pictures: Sequence[ImageLike],
        locations: Sequence[str] | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[ClassPrediction]:
        """What the model takes each picture for; `places` are what messages call them."""
        self.model.eval()
        predictions: list[ClassPrediction] = []
        for start in range(0, len(pictures), PICTURES_PER_BATCH):
            chunk = range(start, min(start + PICTURES_PER_BATCH, len(pictures)))
            pixels = [
                self.pictures.read(pictures[n], locations[n] if locations else None) for n in chunk
            ]
            for row in self.model({"pictures": self.pictures.to_tensor(pixels)}):
                probabilities = dict(zip(self.labels.names, row.softmax(-1).tolist(), strict=True))
                predictions.append(
                    ClassPrediction(
                        max(probabilities, key=probabilities.__getitem__), probabilities
                    )
                )
            if on_progress is not None:
                on_progress(len(pixels))
        return predictions

    def iterate_by_length(self, examples: Sequence[Example]) -> Iterator[ImageBatch]:
        """All have one length, so that it is their number that counts."""
        for start in range(0, len(examples), PICTURES_PER_BATCH):
            yield self.collate(examples[start : start + PICTURES_PER_BATCH])

    def attention_weights(self, picture: ImageLike) -> dict[str, Tensor]:
        """Every weight that was paid, by the name of the attention; class token, then patches."""
        return self.observed_weights(
            {"pictures": self.pictures.to_tensor([self.pictures.read(picture)])}
        )

    def patch_attention_weights(
        self, picture: ImageLike
    ) -> dict[str, Float[Tensor, "h rows columns"]]:
        """What the class token looked at, by layer and head, laid over the picture.

        What it gave to itself is missing from the sum.
        """
        encoder = self.model.encoder
        height, width = self.pictures.read(picture).shape[:2]
        grid = encoder.grid(height, width)
        return {
            name: weights[0, :, 0, 1:].unflatten(-1, grid)
            for name, weights in self.attention_weights(picture).items()
            if weights.ndim == 4
        }
