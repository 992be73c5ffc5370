"""TODO regard.config.data.bits."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, NonEmptyTuple, Positive

SIZE_HELP = "Sequences to train on."

SEED_HELP = "Another seed, other sequences."

HELD_OUT_HELP = "Sequences in dev, and in the test for each size that is tested."

WIDTH_HELP = "Bits of a vector."


class CopyDataConfig(DataConfig):
    """Vectors to be copied: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.bits:Copy"
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


class RecallDataConfig(DataConfig):
    """Items, and one of them again, after which the next is to be told: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.bits:Recall"
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
