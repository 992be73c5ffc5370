"""[model] of sequence learners: NTM, LSTM and SNAIL."""

from typing import Literal

from pydantic import Field

from regard.config.base import Config, NonEmptyTuple, Positive, Rate
from regard.config.models.model_fields import DROPOUT_HELP


class NtmConfig(Config):
    """A Neural Turing Machine (Graves et al. 2014)."""

    kind: Literal["ntm"] = "ntm"
    controller: Literal["feedforward", "lstm"] = Field(
        default="lstm", description="Controller of the heads: feedforward or lstm."
    )
    dim: Positive = Field(default=100, description="Width of the controller.")
    slots: Positive = Field(default=128, description="Number of slots in the memory.")
    slot_dim: Positive = Field(default=20, description="Width of a slot.")
    read_heads: Positive = Field(default=1, description="Number of read heads.")
    write_heads: Positive = Field(default=1, description="Number of write heads.")
    max_shift: Positive = Field(
        default=1, description="Maximum number of slots that a head moves in a step."
    )
    gradient_clip: float = Field(
        default=10.0,
        ge=0,
        description="Limit of the gradient of addressing weights from step to step, 0 or more; 0: "
        "no limit.",
    )


class LstmConfig(Config):
    """An LSTM, the baseline of memory models."""

    kind: Literal["lstm"] = "lstm"
    dim: Positive = Field(default=256, description="Width of the hidden states.")
    layers: Positive = Field(default=1, description="Number of layers.")
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class SnailConfig(Config):
    """SNAIL: dilated convolutions and causal attention in turns (Mishra et al. 2018)."""

    kind: Literal["snail"] = "snail"
    dim: Positive | None = Field(
        default=None,
        description="Width of a linear layer before the blocks. Default: no such layer.",
    )
    blocks: NonEmptyTuple[str] = Field(
        default=("TC(32)", "TC(32)", "A(32, 32)"),
        description='Blocks in order: "TC(filters)" for convolutions, "A(keys, values)" for '
        "attention.",
    )
    dilation: Literal[1, 2] = Field(
        default=1,
        description="First dilation of the convolutions: 1 (1, 2, 4, …) or 2 (2, 4, 8, …, as "
        "published).",
    )
    tie_query_key_init: bool = Field(
        default=False,
        description="Initialize keys like queries, so that a step first attends to similar steps.",
    )
