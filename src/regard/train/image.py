"""A run that tells what is in a picture: one of the classes of its data."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import safetensors.torch

from regard.batching.batches import Batches, InMemoryExamples
from regard.batching.pictures import PicturePreprocessor
from regard.config.image import check_patch_size
from regard.config.load import load as load_settings
from regard.config.settings import ImageSettings, Settings
from regard.data.corpus import Corpus, Record, location
from regard.data.formats.images import ImageLike, ImageReader
from regard.layers.lora import add_lora
from regard.layers.pictures import resize_position_table
from regard.metrics.classification import accuracy, macro_f1
from regard.models.catalogue import build_model as build_model
from regard.tasks.classify import ClassPrediction, EncoderClassifier
from regard.tasks.image import ImageTask
from regard.tasks.loss import Loss
from regard.text.labels import Labels
from regard.train.headed import EncoderRun
from regard.train.run import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    Prediction,
    ProgressCallback,
    check_run_files,
)
from regard.training.pretrained import ENCODER_PREFIX, load_matching_weights

MAX_PIXEL_BYTES_IN_MEMORY = (
    1 << 30
)  # bytes of pixels that are kept; pictures beyond are read anew each time
POSITION_WEIGHTS = "position.weight"


class ImageRun(EncoderRun):
    """Pictures of clothes, of animals, of shapes: any label."""

    vocabulary_loaders: ClassVar = {"labels": Labels.load}
    unit: ClassVar = "pictures"
    example_unit: ClassVar = "pictures"
    special_token_count: ClassVar = 0
    settings: ImageSettings
    task: ImageTask

    def build_task(self) -> ImageTask:
        labels, head, start = self.vocabularies["labels"], self.settings.head, self.settings.start
        picture_config, model = self.settings.image, self.settings.model
        options = model.model_dump(exclude={"kind"})
        sizes = {"size": picture_config.size, "channels": picture_config.channels}
        encoder = build_model(model.kind, {**options, **sizes})
        classifier = EncoderClassifier(
            encoder,
            labels.size,
            pooling=head.pooling,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora_rank:
            add_lora(encoder, start.lora_rank)
        reader = ImageReader(picture_config.size, picture_config.channels, picture_config.fit)
        return ImageTask(
            classifier, PicturePreprocessor(reader, picture_config.mean, picture_config.std), labels
        )

    @classmethod
    def resolve_settings(cls, settings: Any) -> Any:
        """With the model of the run that it starts from, and its way of reading."""
        start, picture_config = settings.start.run, settings.image
        if start is None:
            return settings
        base = pretrained_image_settings(start)
        explicit_values = {
            name: getattr(picture_config, name) for name in picture_config.model_fields_set
        }
        merged_config = base.image.model_copy(update=explicit_values)
        if merged_config.channels != base.image.channels:
            raise ValueError(
                f"image.channels = {merged_config.channels}, but {start} has read pictures of "
                f"{base.image.channels}: leave it out"
            )
        check_patch_size(merged_config.size, base.model.patch_size)
        return settings.model_copy(update={"model": base.model, "image": merged_config})

    def load_pretrained(self) -> None:
        """The encoder of the run that it starts from, its positions brought to this size."""
        if (start := self.settings.start.run) is None:
            return
        run_weights = safetensors.torch.load_file(Path(start) / WEIGHTS_FILE)
        weights = {
            n[len(ENCODER_PREFIX) :]: w
            for n, w in run_weights.items()
            if n.startswith(ENCODER_PREFIX)
        }
        encoder = self.task.model.encoder
        grids = [
            encoder.grid(*size)
            for size in (pretrained_image_settings(start).image.size, encoder.size)
        ]
        weights[POSITION_WEIGHTS] = resize_position_table(
            weights[POSITION_WEIGHTS], grids[0], grids[1]
        )
        load_matching_weights(encoder, weights, Path(start) / WEIGHTS_FILE)

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        return {"labels": Labels.from_data(record["label"] for record in corpus.read("train"))}

    def batches(self, corpus: Corpus) -> Batches:
        """The labels of dev and test are looked at first, then all pictures, if they are kept."""
        train, labels = self.settings.train, self.task.labels
        for split in set(corpus.splits) - {"train"}:
            for index, record in enumerate(corpus.read(split)):
                if record["label"] not in labels.indices:
                    labels.index(record["label"], location(corpus, split, index))
        count = sum(1 for _ in corpus.read("train"))
        bytes_per_picture = math.prod(self.settings.image.size) * self.settings.image.channels
        examples = list(
            self.task.examples(
                corpus.read("train"),
                load_pictures=count * bytes_per_picture <= MAX_PIXEL_BYTES_IN_MEMORY,
            )
        )
        return Batches(
            InMemoryExamples(examples, self.settings.seed),
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
            collate=partial(
                self.task.collate_for_training, crop=train.crop_padding, flip=train.flip
            ),
        )

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.negative_log_likelihood(
            list(self.task.examples(records, load_pictures=False))
        )

    def metrics(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """Accuracy and macro F1."""
        predicted_labels = [
            prediction.label
            for prediction in self.predict([r["picture"] for r in records], on_progress)
        ]
        reference_labels = [record["label"] for record in records]
        return {
            "accuracy": 100 * accuracy(predicted_labels, reference_labels),
            "accuracy_signature": self.signature(),
            "f1": 100 * macro_f1(predicted_labels, reference_labels),
        }

    def signature(self) -> str:
        """What else than the model a share of right answers hangs on."""
        height, width = self.settings.image.size
        conditions = f"classes:{self.task.labels.size}|top:1|crops:1"
        return f"accuracy|{conditions}|size:{height}x{width}|fit:{self.settings.image.fit}|v:1"

    def predict(
        self,
        pictures: Sequence[ImageLike],
        on_progress: ProgressCallback | None = None,
        locations: Sequence[str] | None = None,
    ) -> list[ClassPrediction]:
        """What each picture (a path or an array) is taken for."""
        return self.task.predict(pictures, locations, on_progress)

    def __call__(self, picture: ImageLike) -> ClassPrediction:
        return self.predict([picture])[0]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """Texts are paths; one label for each."""
        locations = [f"{location_format.format(n)}: {text}" for n, text in enumerate(lines, 1)]
        for text, line_location in zip(lines, locations, strict=True):
            if not Path(text).is_file():
                raise ValueError(
                    f"{line_location}: there is no such picture; a line is the path of one"
                )
        return [
            Prediction(
                prediction.label,
                {
                    "picture": text,
                    "label": prediction.label,
                    "probabilities": prediction.probabilities,
                },
            )
            for text, prediction in zip(
                lines, self.predict(lines, locations=locations), strict=True
            )
        ]


def pretrained_image_settings(folder: Path | str) -> ImageSettings:
    """The settings of a run whose encoder others can start from."""
    check_run_files(Path(folder), (CONFIG_FILE, WEIGHTS_FILE))
    base = load_settings(Path(folder) / CONFIG_FILE)
    if not isinstance(base, ImageSettings):
        raise ValueError(f"{folder}: holds a run of task {base.task!r}, which reads no pictures")
    return base
