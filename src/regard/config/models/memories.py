"""TODO regard.config.models.memories."""

from typing import Literal

from pydantic import Field

from regard.config.base import Config, NonEmptyTuple, Positive, Rate
from regard.config.models.common import DROPOUT_HELP


class NtmConfig(Config):
    """A Neural Turing Machine (Graves et al. 2014)."""

    kind: Literal["ntm"] = "ntm"
    controller: Literal["feedforward", "lstm"] = Field(
        default="lstm", description="What steers the heads: feedforward or lstm."
    )
    dim: Positive = Field(default=100, description="Width of the controller.")
    slots: Positive = Field(default=128, description="Places in the memory.")
    slot_dim: Positive = Field(default=20, description="Numbers in each of them.")
    read_heads: Positive = Field(default=1, description="Heads that read.")
    write_heads: Positive = Field(default=1, description="Heads that write.")
    max_shift: Positive = Field(
        default=1, description="Slots that a head moves in a step, at most."
    )
    gradient_clip: float = Field(
        default=10.0,
        ge=0,
        description="Largest gradient, in bits, that a weight hands to the step before; 0: any.",
    )


class LstmConfig(Config):
    """Long short-term memory, without any other: what an ntm is compared with."""

    kind: Literal["lstm"] = "lstm"
    dim: Positive = Field(default=256, description="Width of a state.")
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class SnailConfig(Config):
    """Dilated convolutions and causal attention in turns (Mishra et al. 2018)."""

    kind: Literal["snail"] = "snail"
    dim: Positive | None = Field(
        default=None, description="Width of a layer below the blocks; none where not set."
    )
    blocks: NonEmptyTuple[str] = Field(
        default=("TC(32)", "TC(32)", "A(32, 32)"),
        description='In their order: "TC(filters)" convolves, "A(keys, values)" looks back.',
    )
    dilation: Literal[1, 2] = Field(
        default=1,
        description="Of the first convolution: 1, 2, 4, …; or 2, 4, 8, … as in the paper.",
    )
    tie_query_key_init: bool = Field(
        default=False,
        description="Keys begin as queries do: at first a step looks at those that are like it.",
    )
