"""[data] of bit sequences to copy or to recall."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, NonEmptyTuple, Positive

SIZE_HELP = "Number of training sequences."

SEED_HELP = "Random seed of the sequences."

HELD_OUT_HELP = "Number of sequences in dev, and in test for each size of test_sizes."

WIDTH_HELP = "Number of bits in a vector."


class CopyDataConfig(DataConfig):
    """Synthetic sequences of bit vectors to copy."""

    corpus_class: ClassVar = "regard.data.synthetic.bits:Copy"
    kind: Literal["copy"] = "copy"
    size: Positive = Field(default=50_000, description=SIZE_HELP)
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=200, description=HELD_OUT_HELP)
    width: Positive = Field(default=8, description=WIDTH_HELP)
    min_vectors: Positive = Field(default=1, description="Minimum number of vectors in a sequence.")
    max_vectors: Positive = Field(
        default=20, description="Maximum number of vectors in a sequence."
    )
    test_sizes: NonEmptyTuple[Positive] = Field(
        default=(20, 40, 80, 120), description="Numbers of vectors in the test sequences."
    )


class RecallDataConfig(DataConfig):
    """Synthetic sequences of items; the model sees one of them again and recalls the next."""

    corpus_class: ClassVar = "regard.data.synthetic.bits:Recall"
    kind: Literal["recall"] = "recall"
    size: Positive = Field(default=50_000, description=SIZE_HELP)
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=200, description=HELD_OUT_HELP)
    width: Positive = Field(default=6, description=WIDTH_HELP)
    vectors_per_item: Positive = Field(default=3, description="Number of vectors in an item.")
    min_items: Positive = Field(default=2, description="Minimum number of items in a sequence.")
    max_items: Positive = Field(default=6, description="Maximum number of items in a sequence.")
    test_sizes: NonEmptyTuple[Positive] = Field(
        default=(6, 10, 15), description="Numbers of items in the test sequences."
    )
