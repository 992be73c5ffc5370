"""Settings of image classification."""

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

ImageDataConfig = Annotated[
    ShapesDataConfig | ImagesDataConfig | PublicImagesDataConfig, Field(discriminator="kind")
]


class ImageTrainConfig(TrainConfig):
    """Training to tell what is in an image."""

    tokens_per_batch: Positive | None = Field(default=None, description="Not for images.")
    examples_per_batch: Positive | None = Field(default=64, description="Images of a batch.")
    max_tokens: Positive = Field(default=1, description="Not for images: all have one size.")
    crop_padding: Count = Field(
        default=0,
        description="An image gets so many black pixels around it, and its own size is cut out of "
        "that anywhere: each time, it stands a little elsewhere.",
    )
    flip: bool = Field(default=False, description="Half of the images are seen in a mirror.")
    metric: Literal["loss", "accuracy", "f1"] = Field(
        default="loss", description="What is better, on dev: loss, accuracy or (macro) f1."
    )

    @model_validator(mode="after")
    def _check_batch_size(self) -> "ImageTrainConfig":
        if self.tokens_per_batch is not None:
            raise ValueError("tokens_per_batch is not for images: give examples_per_batch")
        return self


class ImageStartConfig(StartConfig):
    """What to begin with, other than chance."""

    run: str | None = Field(
        default=None,
        description="The folder of a run (image, or imported) whose encoder is taken over; [model] "
        "is then as there, and of [image] what is not given; its size may be another.",
    )


class ImageSettings(Settings):
    """An image into one of some classes."""

    task: Literal["image"] = Field(default="image", description="What the model is to do.")
    data: ImageDataConfig = Field(
        default=ShapesDataConfig(), description="shapes, images or public."
    )
    text: TextConfig = Field(default=TextConfig(), description="Not for images.")
    image: ImageConfig = Field(default=ImageConfig(), description="How an image becomes numbers.")
    model: VitConfig = Field(
        default=VitConfig(patch_size=4, dim=64, heads=4, layers=4), description=MODEL_HELP
    )
    start: ImageStartConfig = Field(
        default=ImageStartConfig(), description="What to begin with, other than chance."
    )
    head: HeadConfig = Field(default=HeadConfig(), description="From the encoder to the classes.")
    train: ImageTrainConfig = Field(default=ImageTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "ImageSettings":
        if self.start.run is None:
            check_patch_size(self.image.size, self.model.patch_size)
        return self
