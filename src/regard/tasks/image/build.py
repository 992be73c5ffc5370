"""Builds the task of image classification from its settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from torch import nn

from regard.batching.images import ImagePreprocessor
from regard.config.image_size import check_patch_size
from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.data.formats.images import ImageReader
from regard.errors import InputError
from regard.files import JsonObject
from regard.layers.images import resize_position_table
from regard.models.catalogue import build_model
from regard.models.protocols import require_model
from regard.models.vit import Vit
from regard.tasks.base import RunAsset, Vocabularies, VocabularyLoader
from regard.tasks.building import find_vocabulary, model_options
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.encoder_classifier import (
    ClassifierComparison,
    EncoderClassifier,
    build_classifier,
)
from regard.tasks.encoding import EncoderBuilder
from regard.tasks.image.check import check_image_data
from regard.tasks.image.settings import ImageSettings
from regard.tasks.image.task import ImageTask
from regard.tasks.load import load_settings
from regard.tasks.pretrained import load_matching_weights, read_encoder_weights
from regard.tasks.run_folder import CONFIG_FILE, WEIGHTS_FILE, check_run_files, verify_run
from regard.text.labels import Labels

POSITION_WEIGHTS = "position.weight"


class ImageBuilder(EncoderBuilder[ImageSettings, EncoderClassifier[Vit]]):
    """Reads `ImageSettings`; the encoder of a pretrained run may have another image size."""

    comparison_class: ClassVar = ClassifierComparison
    special_token_count: ClassVar = 0

    def resolve_settings(self, settings: ImageSettings) -> ImageSettings:
        """Return settings with [model] and the unset values of [image] from the pretrained run."""
        start = settings.start.run
        if start is None:
            return settings
        pretrained = pretrained_image_settings(start)
        explicit_values = {
            name: getattr(settings.image, name) for name in settings.image.model_fields_set
        }
        image = pretrained.image.model_copy(update=explicit_values)
        if image.channels != pretrained.image.channels:
            raise InputError(
                f"image.channels = {image.channels}, but {start} reads images of "
                f"{pretrained.image.channels}; leave it out"
            )
        check_patch_size(image.size, pretrained.model.patch_size)
        return settings.model_copy(update={"model": pretrained.model, "image": image})

    def vocabulary_loaders(self, settings: ImageSettings) -> Mapping[str, VocabularyLoader]:  # noqa: ARG002
        return {"labels": Labels.load}

    def build_vocabularies(self, settings: ImageSettings, corpus: Corpus) -> dict[str, RunAsset]:  # noqa: ARG002
        return {"labels": Labels.from_data(record["label"] for record in corpus.read("train"))}

    def build_encoder(self, settings: ImageSettings, vocabularies: Vocabularies) -> nn.Module:  # noqa: ARG002
        sizes = {"size": settings.image.size, "channels": settings.image.channels}
        return build_model(settings.model.kind, {**model_options(settings.model), **sizes})

    def build_head(
        self, settings: ImageSettings, vocabularies: Vocabularies, encoder: nn.Module
    ) -> EncoderClassifier[Vit]:
        classes, frozen = (
            find_vocabulary(vocabularies, "labels", Labels).size,
            settings.start.freeze,
        )
        return build_classifier(require_model(encoder, Vit), classes, settings.head, frozen=frozen)

    def build_task(
        self,
        settings: ImageSettings,
        vocabularies: Vocabularies,
        model: EncoderClassifier[Vit],
    ) -> ImageTask:
        image, train = settings.image, settings.train
        reader = ImageReader(image.size, image.channels, image.fit)
        return ImageTask(
            model,
            ImagePreprocessor(reader, image.mean, image.std),
            find_vocabulary(vocabularies, "labels", Labels),
            crop_padding=train.crop_padding,
            flip=train.flip,
            label_smoothing=train.label_smoothing,
            layer_decay=settings.start.layer_decay,
        )

    def load_pretrained(self, settings: ImageSettings, model: EncoderClassifier[Vit]) -> None:
        """Load the encoder of the pretrained run; resize its positions to `image.size`."""
        if settings.start.run is None:
            return
        path, encoder = Path(settings.start.run) / WEIGHTS_FILE, model.encoder
        weights = read_encoder_weights(path)
        pretrained_size = pretrained_image_settings(settings.start.run).image.size
        weights[POSITION_WEIGHTS] = resize_position_table(
            weights[POSITION_WEIGHTS], encoder.grid(*pretrained_size), encoder.grid(*encoder.size)
        )
        load_matching_weights(encoder, weights, path)

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_image_data(settings, progress)


def pretrained_image_settings(folder: Path | str) -> ImageSettings:
    """Return the settings of a run of `image`; raise an error for other runs."""
    check_run_files(Path(folder), (CONFIG_FILE, WEIGHTS_FILE))
    verify_run(Path(folder))
    settings = load_settings(Path(folder) / CONFIG_FILE)
    if not isinstance(settings, ImageSettings):
        raise InputError(
            f"{folder}: a run of the task {settings.task!r} reads no images; name a run of 'image'"
        )
    return settings


BUILDER = ImageBuilder()
