"""[data], [model] and [train] for copy and recall: sequences of bits, and machines that learn."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.base import Config, Count, NonEmptyTuple, Positive, Rate
from regard.config.model import DROPOUT_HELP

SIZE_HELP, SEED_HELP = "Sequences to train on.", "Another seed, other sequences."
HELD_OUT_HELP = "Sequences in dev, and in the test for each size that is tested."
WIDTH_HELP = "Bits of a vector."


class CopyDataConfig(Config):
    """Vectors to be copied: made here."""

    kind: Literal["copy"] = "copy"
    size: Positive = Field(default=50_000, description=SIZE_HELP)
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=200, description=HELD_OUT_HELP)
    width: Positive = Field(default=8, description=WIDTH_HELP)
    min_vectors: Positive = Field(default=1, description="Vectors of a sequence, at least.")
    max_vectors: Positive = Field(default=20, description="Vectors of a sequence, at most.")
    test_sizes: NonEmptyTuple[Positive] = Field(
        default=(20, 40, 80, 120), description="Vectors of the sequences in the test."
    )


class RecallDataConfig(Config):
    """Items, and one of them again, after which the next is to be told: made here."""

    kind: Literal["recall"] = "recall"
    size: Positive = Field(default=50_000, description=SIZE_HELP)
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=200, description=HELD_OUT_HELP)
    width: Positive = Field(default=6, description=WIDTH_HELP)
    vectors_per_item: Positive = Field(default=3, description="Vectors of an item.")
    min_items: Positive = Field(default=2, description="Items of a sequence, at least.")
    max_items: Positive = Field(default=6, description="Items of a sequence, at most.")
    test_sizes: NonEmptyTuple[Positive] = Field(
        default=(6, 10, 15), description="Items of the sequences in the test."
    )


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


BitsModelConfig = Annotated[NtmConfig | LstmConfig, Field(discriminator="kind")]
