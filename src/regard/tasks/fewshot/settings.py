"""Settings of few-shot recognition."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive
from regard.config.data.image_classes import (
    ClassesDataConfig,
    PrototypesDataConfig,
    PublicClassesDataConfig,
)
from regard.config.image_size import check_image_size
from regard.config.models.memories import LstmConfig, SnailConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.errors import InputError

FewshotDataConfig = Annotated[
    PrototypesDataConfig | ClassesDataConfig | PublicClassesDataConfig, Field(discriminator="kind")
]

FewshotModelConfig = Annotated[SnailConfig | LstmConfig, Field(discriminator="kind")]

DEFAULT_BLOCKS = ("A(64, 32)", "TC(128)", "A(256, 128)", "TC(128)", "A(512, 256)")


class EmbedConfig(Config):
    """[embed]: convolutions from an image to a vector (Vinyals et al. 2016)."""

    dim: Positive = Field(default=64, description="Size of the vector of an image.")
    hidden_dim: Positive = Field(default=64, description="Filters of each convolution.")
    layers: Positive = Field(
        default=4, description="Number of convolutions; each halves the image."
    )


class FewshotTrainConfig(TrainConfig):
    """[train] of few-shot recognition."""

    tokens_per_batch: Positive | None = Field(
        default=None, description="Unused: set examples_per_batch."
    )
    examples_per_batch: Positive | None = Field(default=32, description="Episodes per batch.")
    steps: Positive | None = Field(default=10_000, description="Number of optimizer steps.")
    max_tokens: Positive = Field(default=1, description="Unused: all episodes have one length.")
    queries: Positive = Field(
        default=5, description="Queries per episode, each classified by itself."
    )
    vary_shots: bool = Field(
        default=False, description="Sample 1 to data.shots shots for each batch, as in the paper."
    )
    metric: Literal["loss", "accuracy"] = Field(
        default="accuracy",
        description="Metric on dev that selects the best weights: loss or accuracy.",
    )

    @model_validator(mode="after")
    def _check_batch_size_and_steps(self) -> "FewshotTrainConfig":
        if self.tokens_per_batch is not None:
            raise InputError("tokens_per_batch is not for episodes; set examples_per_batch")
        if self.epochs is not None:
            raise InputError("epochs are not for episodes, which have no end; set steps")
        return self


class FewshotSettings(Settings):
    """Settings of a run that learns classes from a few examples."""

    task: Literal["fewshot"] = Field(default="fewshot", description="Task of the run.")
    data: FewshotDataConfig = Field(
        default=PrototypesDataConfig(), description="Data set: prototypes, classes or public."
    )
    embed: EmbedConfig = Field(
        default=EmbedConfig(), description="Network from an image to a vector."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="characters"), description="Unused: there is no text."
    )
    model: FewshotModelConfig = Field(
        default=SnailConfig(blocks=DEFAULT_BLOCKS, tie_query_key_init=True), description=MODEL_HELP
    )
    train: FewshotTrainConfig = Field(default=FewshotTrainConfig(), description=TRAIN_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        one_length = "all episodes have one length"
        unused = {"text": "episodes have no text", "train.max_tokens": one_length}
        if self.data.kind == "prototypes":
            unused["embed"] = "prototypes are vectors, not images"
        return unused

    @model_validator(mode="after")
    def _check_settings(self) -> "FewshotSettings":
        if self.data.kind != "prototypes":
            check_image_size(self.data.image_size, self.embed.layers)
        return self
