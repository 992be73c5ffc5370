"""Settings of image classification."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Count, Positive
from regard.config.data.images import ImagesDataConfig, PublicImagesDataConfig, ShapesDataConfig
from regard.config.encoder_head import HeadConfig, StartConfig
from regard.config.image_size import ImageConfig, check_patch_size
from regard.config.models.images import VitConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.errors import InputError

ImageDataConfig = Annotated[
    ShapesDataConfig | ImagesDataConfig | PublicImagesDataConfig, Field(discriminator="kind")
]


class ImageTrainConfig(TrainConfig):
    """[train] of image classification."""

    tokens_per_batch: Positive | None = Field(
        default=None, description="Unused: images have no tokens."
    )
    examples_per_batch: Positive | None = Field(default=64, description="Images per batch.")
    max_tokens: Positive = Field(default=1, description="Unused: all images have one size.")
    crop_padding: Count = Field(
        default=0,
        description="Padding of a random crop, in pixels: black on each side, then a crop of the "
        "original size at a random offset; 0: no crop.",
    )
    flip: bool = Field(
        default=False, description="Mirror half of the training images, chosen at random."
    )
    metric: Literal["loss", "accuracy", "f1"] = Field(
        default="accuracy",
        description="Metric on dev that selects the best weights: loss, accuracy or (macro) f1.",
    )

    @model_validator(mode="after")
    def _check_batch_size(self) -> "ImageTrainConfig":
        if self.tokens_per_batch is not None:
            raise InputError("tokens_per_batch is not for images; set examples_per_batch")
        return self


class ImageStartConfig(StartConfig):
    """[start]: pretrained weights."""

    run: str | None = Field(
        default=None,
        description="Folder of a run (image, or imported) whose encoder is loaded. [model] and the "
        "unset values of [image] come from that run; image.size may differ.",
    )


class ImageSettings(Settings):
    """Settings of a run that assigns a class to an image."""

    task: Literal["image"] = Field(default="image", description="Task of the run.")
    data: ImageDataConfig = Field(
        default=ShapesDataConfig(), description="Data set: shapes, images or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="characters"), description="Unused: images have no tokens."
    )
    image: ImageConfig = Field(
        default=ImageConfig(), description="Size and normalization of images."
    )
    model: VitConfig = Field(
        default=VitConfig(patch_size=4, dim=64, heads=4, layers=4), description=MODEL_HELP
    )
    start: ImageStartConfig = Field(
        default=ImageStartConfig(), description="Pretrained weights to start from."
    )
    head: HeadConfig = Field(
        default=HeadConfig(), description="Layers from the encoder to the classes."
    )
    train: ImageTrainConfig = Field(default=ImageTrainConfig(), description=TRAIN_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        return {"text": "images have no tokens", "train.max_tokens": "all images have one size"}

    @model_validator(mode="after")
    def _check_settings(self) -> "ImageSettings":
        if self.start.run is None:
            check_patch_size(self.image.size, self.model.patch_size)
        return self
