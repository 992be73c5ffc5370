"""Examples, and a source and a target as one padded batch.

b: examples in the batch   s: source positions   t: target positions
"""

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import InputError
from regard.text.special import END, PAD, START


@runtime_checkable
class SizedExample(Protocol):
    """A frozen dataclass that can be put into batches of examples of about equal size."""

    @property
    def index(self) -> int:
        """The position in the corpus, so that predictions can be put back in order."""
        ...

    @property
    def lengths(self) -> tuple[int, int]:
        """Positions of the source and of the target, which fill a batch."""
        ...


SizedT = TypeVar("SizedT", bound=SizedExample)


@dataclass(frozen=True, slots=True)
class Example:
    """A source and a target as ids, without START and END."""

    index: int
    source: Sequence[int]
    target: Sequence[int]

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.source), len(self.target)


@dataclass(frozen=True, slots=True)
class ExampleSize:
    """The size of an example, for checks that need no ids."""

    index: int
    lengths: tuple[int, int]


@dataclass(frozen=True)
class Batch:
    """Sources and targets, padded on the right; `target_in` is one step behind `target_out`."""

    indices: Int[Tensor, " b"]  # positions of the examples in the corpus
    source: Int[Tensor, "b s"]  # … END
    source_valid: Bool[Tensor, "b s"]
    target_in: Int[Tensor, "b t"]  # START …
    target_out: Int[Tensor, "b t"]  # … END
    target_valid: Bool[Tensor, "b t"]
    guide: Float[Tensor, "b t s"] | None = None  # source positions to attend to, if known

    @property
    def target_token_count(self) -> int:
        """The number of target tokens without padding, END included."""
        return int(self.target_valid.sum())


def with_index(example: SizedT, index: int) -> SizedT:
    """Return the example with another index."""
    if not is_dataclass(example):
        raise TypeError(f"an example must be a dataclass, not {type(example).__name__}")
    return replace(example, index=index)


def collate(examples: Sequence[Example]) -> Batch:
    """Return one padded batch."""
    if not examples:
        raise InputError("examples are missing: a batch has at least one")
    source, source_valid = padded([[*example.source, END] for example in examples])
    target_in, target_valid = padded([[START, *example.target] for example in examples])
    target_out, _ = padded([[*example.target, END] for example in examples])
    indices = torch.tensor([example.index for example in examples])
    return Batch(indices, source, source_valid, target_in, target_out, target_valid)


def padded(rows: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "b t"], Bool[Tensor, "b t"]]:
    """Return rows padded to the longest, and a mask of the positions that are not padding."""
    length = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[PAD] * (length - len(row))] for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(length) < lengths[:, None]
