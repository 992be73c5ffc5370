"""A source and a target as ids, and many of them as one padded batch.

b: pairs in the batch   s: source positions   t: target positions
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.text.special import END, PAD, START


class Pair(NamedTuple):
    """One example; ids are without the marks of start and end."""

    number: int  # its place in the corpus, so that answers can be put back in order
    source: Sequence[int]
    target: Sequence[int]


@dataclass(frozen=True)
class Batch:
    """Right-padded. The decoder reads `target_in` and is to say `target_out`, one step ahead."""

    numbers: Int[Tensor, " b"]  # which pairs these are
    source: Int[Tensor, "b s"]  # … END
    source_valid: Bool[Tensor, "b s"]
    target_in: Int[Tensor, "b t"]  # START …
    target_out: Int[Tensor, "b t"]  # … END
    target_valid: Bool[Tensor, "b t"]

    @property
    def tokens(self) -> int:
        """How many target tokens are real, the end included."""
        return int(self.target_valid.sum())


def collate(pairs: Sequence[Pair]) -> Batch:
    if not pairs:
        raise ValueError("pairs are missing: a batch has at least one")
    source, source_valid = padded([[*pair.source, END] for pair in pairs])
    target_in, target_valid = padded([[START, *pair.target] for pair in pairs])
    target_out, _ = padded([[*pair.target, END] for pair in pairs])
    numbers = torch.tensor([pair.number for pair in pairs])
    return Batch(numbers, source, source_valid, target_in, target_out, target_valid)


def padded(rows: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "b t"], Bool[Tensor, "b t"]]:
    """Rows filled up to the longest, and what of it is real."""
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(longest) < lengths[:, None]
