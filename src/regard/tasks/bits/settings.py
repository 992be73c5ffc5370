"""Settings of copying and recalling bits."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.base import Positive
from regard.config.data.bits import CopyDataConfig, RecallDataConfig
from regard.config.models.memories import LstmConfig, NtmConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.train import TrainConfig

BitsModelConfig = Annotated[NtmConfig | LstmConfig, Field(discriminator="kind")]


class BitsTrainConfig(TrainConfig):
    """Training to remember."""

    tokens_per_batch: Positive | None = Field(
        default=None, description="Size of a batch, in steps. Or give examples_per_batch."
    )
    examples_per_batch: Positive | None = Field(
        default=16, description="Sequences of a batch. Or give tokens_per_batch."
    )
    max_tokens: Positive = Field(
        default=256, description="Longer sequences, in steps, are left out."
    )
    max_grad_norm: float = Field(
        default=10.0, ge=0, description="Longest gradient; longer ones are cut; 0: none."
    )
    metric: Literal["loss"] = Field(
        default="loss", description="What is better, on dev: loss, in bits of a sequence."
    )


class CopySettings(Settings):
    """A sequence of bits, told again after its end."""

    task: Literal["copy"] = Field(default="copy", description="What the model is to do.")
    data: CopyDataConfig = Field(
        default=CopyDataConfig(), description="Vectors of bits, made here."
    )
    model: BitsModelConfig = Field(default=NtmConfig(), description=MODEL_HELP)
    train: BitsTrainConfig = Field(default=BitsTrainConfig(), description=TRAIN_HELP)


class RecallSettings(Settings):
    """The item that followed one which is shown again."""

    task: Literal["recall"] = Field(default="recall", description="What the model is to do.")
    data: RecallDataConfig = Field(
        default=RecallDataConfig(), description="Items of bits, made here."
    )
    model: BitsModelConfig = Field(default=NtmConfig(), description=MODEL_HELP)
    train: BitsTrainConfig = Field(default=BitsTrainConfig(), description=TRAIN_HELP)
