"""Image classification: an image into one of several classes.

b: images   h: heads
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.batching.batches import Batches, InMemoryExamples
from regard.batching.images import ImagePreprocessor
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.data.formats.images import ImageLike, Pixels, check_image_header
from regard.errors import InputError
from regard.models.vit import Vit
from regard.tasks.base import (
    BatchOptions,
    FieldValue,
    Metrics,
    Prediction,
    ProgressCallback,
)
from regard.tasks.encoder_classifier import (
    ClassBatch,
    ClassPrediction,
    EncoderClassifier,
    EncoderClassifierTask,
)
from regard.tasks.image import view
from regard.tasks.image_tools import image_field
from regard.text.labels import Labels
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

IMAGES_PER_BATCH = 256  # in prediction and evaluation
MAX_PIXEL_BYTES_IN_MEMORY = 1 << 30  # larger data is read from its files in each epoch


@dataclass(frozen=True)
class ImageExample:
    """An image, as pixels or as the path of a file, and its class."""

    index: int
    image: ImageLike
    label: int

    @property
    def lengths(self) -> tuple[int, int]:
        return 1, 1


class ImageTask(EncoderClassifierTask[ImageExample, Vit]):
    """An image classifier, its preprocessing and the names of its classes."""

    name: ClassVar = "image"
    unit: ClassVar = "images"
    example_unit: ClassVar = "images"
    accepts_layer: ClassVar = True

    def __init__(
        self,
        model: EncoderClassifier[Vit],
        images: ImagePreprocessor,
        labels: Labels,
        *,
        crop_padding: int = 0,
        flip: bool = False,
        label_smoothing: float = 0.0,
        layer_decay: float = 1.0,
    ):
        super().__init__(model, labels, label_smoothing=label_smoothing, layer_decay=layer_decay)
        self.images, self.crop_padding, self.flip = images, crop_padding, flip
        self.input_fields = (image_field(images),)

    # --- training

    def examples(
        self, records: Iterable[Record], *, load_images: bool = False
    ) -> Iterator[ImageExample]:
        """Yield images with their classes; without `load_images`, a batch reads its files."""
        for index, record in enumerate(records):
            label = self.labels.index(record["label"], f"record {index + 1}")
            image = self.images.read(record["image"]) if load_images else record["image"]
            yield ImageExample(index, image, label)

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[ClassBatch]:
        """Check all labels; return batches of images, which memory keeps if they fit."""
        self.check_labels(corpus)
        count = sum(1 for _ in corpus.read("train"))
        bytes_per_image = math.prod(self.image_size) * self.images.reader.channels
        in_memory = count * bytes_per_image <= MAX_PIXEL_BYTES_IN_MEMORY
        examples = list(self.examples(corpus.read("train"), load_images=in_memory))
        return Batches(
            InMemoryExamples(examples, options.seed),
            tokens_per_batch=options.tokens_per_batch,
            examples_per_batch=options.examples_per_batch,
            seed=options.seed,
            collate=self.collate_for_training,
        )

    def collate(self, examples: Sequence[ImageExample]) -> ClassBatch:
        return build_batch(examples, self.images.to_tensor(self.pixels(examples)))

    def collate_for_training(self, examples: Sequence[ImageExample]) -> ClassBatch:
        """Return a batch of images that are cropped and mirrored at random."""
        images = self.images.augmented(
            self.pixels(examples), crop=self.crop_padding, flip=self.flip
        )
        return build_batch(examples, images)

    def pixels(self, examples: Sequence[ImageExample]) -> list[Pixels]:
        return [self.images.read(example.image) for example in examples]

    def iterate_by_length(self, examples: Sequence[ImageExample]) -> Iterator[ClassBatch]:
        """Yield every example once, in order, since all have one length."""
        for start in range(0, len(examples), IMAGES_PER_BATCH):
            yield self.to_device(self.collate(examples[start : start + IMAGES_PER_BATCH]))

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        """Convert a path to a record, after a check of the header of the file."""
        location = f"{location}: {line}"
        if not Path(line).is_file():
            raise InputError(f"{location}: there is no such image; give the path of an image file")
        check_image_header(line, location)
        return {"image": line}

    def to_record(self, values: Mapping[str, FieldValue], location: str) -> Record:  # noqa: ARG002
        return {"image": values["image"]}

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[ClassPrediction]:
        self.model.eval()
        predictions: list[ClassPrediction] = []
        for start in range(0, len(records), IMAGES_PER_BATCH):
            chunk = records[start : start + IMAGES_PER_BATCH]
            pixels = [self.images.read(record["image"]) for record in chunk]
            logits = self.model({"images": self.to_device(self.images.to_tensor(pixels))})
            predictions += [self.to_prediction(row) for row in logits]
            if on_progress is not None:
                on_progress(len(chunk))
        return predictions

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return accuracy with its conditions, and macro F1, in percent."""
        metrics = super().metrics(records, predictions)
        return {
            "accuracy": metrics["accuracy"],
            "accuracy_signature": self.accuracy_signature(),
            "f1": metrics["f1"],
        }

    def accuracy_signature(self) -> str:
        """Return the conditions, other than the model, that accuracy depends on."""
        height, width = self.image_size
        conditions = f"classes:{self.labels.size}|top:1|crops:1"
        return f"accuracy|{conditions}|size:{height}x{width}|fit:{self.images.reader.fit}|v:1"

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of the images that the encoder reads."""
        height, width = self.model.encoder.size
        return height, width

    # --- inspection

    def attention_weights(self, image: ImageLike) -> dict[str, Tensor]:
        """Return all attention weights, by the name of the attention: class token, then patches."""
        return self.observed_weights({"images": self.images.to_tensor([self.images.read(image)])})

    def patch_attention_weights(
        self, image: ImageLike
    ) -> dict[str, Float[Tensor, "h rows columns"]]:
        """Return the attention of the class token to each patch, by layer and head.

        The weight of the class token to itself is missing from the sum.
        """
        height, width = self.images.read(image).shape[:2]
        grid = self.model.encoder.grid(height, width)
        return {
            name: weights[0, :, 0, 1:].unflatten(-1, grid)
            for name, weights in self.attention_weights(image).items()
            if weights.ndim == 4
        }

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.image_map(self, record["image"])

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,
    ) -> str:
        return view.render_image(self, record["image"], surface, layer)


def build_batch(examples: Sequence[ImageExample], images: Float[Tensor, "b k h w"]) -> ClassBatch:
    """Return the batch of these examples, whose pixels are given."""
    return ClassBatch(
        torch.tensor([example.index for example in examples]),
        {"images": images},
        torch.tensor([example.label for example in examples]),
    )
