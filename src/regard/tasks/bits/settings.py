"""Settings of copying and recalling bits."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from regard.config.base import Positive
from regard.config.data.bits import CopyDataConfig, RecallDataConfig
from regard.config.models.memories import LstmConfig, NtmConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig

BitsModelConfig = Annotated[NtmConfig | LstmConfig, Field(discriminator="kind")]


class BitsTrainConfig(TrainConfig):
    """[train] of copying and recalling."""

    tokens_per_batch: Positive | None = Field(
        default=None, description="Size of a batch in steps. Set this or examples_per_batch."
    )
    examples_per_batch: Positive | None = Field(
        default=16, description="Sequences per batch. Set this or tokens_per_batch."
    )
    steps: Positive | None = Field(default=10_000, description="Number of optimizer steps.")
    max_tokens: Positive = Field(
        default=256, description="Longest sequence to train on, in steps; longer ones are left out."
    )
    max_grad_norm: float = Field(
        default=10.0, ge=0, description="Largest norm of the gradient; 0: no clipping."
    )
    metric: Literal["loss"] = Field(
        default="loss",
        description="Metric on dev that selects the best weights: loss, in bits per sequence.",
    )


class BitsSettings(Settings):
    """Settings that `copy` and `recall` share."""

    def unused_settings(self) -> Mapping[str, str]:
        return {"text": "bits are no text", "train.label_smoothing": "bits have no label smoothing"}


class CopySettings(BitsSettings):
    """Settings of a run that copies a sequence of bits after its end."""

    task: Literal["copy"] = Field(default="copy", description="Task of the run.")
    data: CopyDataConfig = Field(
        default=CopyDataConfig(), description="Data set: synthetic sequences of bit vectors."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="characters"), description="Unused: there is no text."
    )
    model: BitsModelConfig = Field(default=NtmConfig(), description=MODEL_HELP)
    train: BitsTrainConfig = Field(default=BitsTrainConfig(), description=TRAIN_HELP)


class RecallSettings(BitsSettings):
    """Settings of a run that recalls the item after a repeated one."""

    task: Literal["recall"] = Field(default="recall", description="Task of the run.")
    data: RecallDataConfig = Field(
        default=RecallDataConfig(), description="Data set: synthetic items of bit vectors."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="characters"), description="Unused: there is no text."
    )
    model: BitsModelConfig = Field(default=NtmConfig(), description=MODEL_HELP)
    train: BitsTrainConfig = Field(default=BitsTrainConfig(), description=TRAIN_HELP)
