"""A source and a target as ids, and many of them as one padded batch.

b: pairs in the batch   s: source positions   t: target positions
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.text.special import END, PAD, START


class Example(NamedTuple):
    """One example; ids are without the marks of start and end."""

    # The position in the corpus, so that predictions can be put back in order.
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]
    source: Sequence[Any]  # ids; words, where letters are read
    target: Sequence[int]
    links: Int[np.ndarray, "k 2"] | None = None  # (target position, source position) of each
    words: Sequence[str] = ()  # what ids beyond the vocabulary stand for, in their order


@dataclass(frozen=True)
class Batch:
    """Right-padded. The decoder reads `target_in` and is to say `target_out`, one step ahead."""

    indices: Int[Tensor, " b"]  # which pairs these are
    source: Int[Tensor, "b s"]  # … END
    source_valid: Bool[Tensor, "b s"]
    target_in: Int[Tensor, "b t"]  # START …
    target_out: Int[Tensor, "b t"]  # … END
    target_valid: Bool[Tensor, "b t"]
    guide: Float[Tensor, "b t s"] | None = None  # where each target token should look, if known

    @property
    def target_token_count(self) -> int:
        """How many target tokens are real, the end included."""
        return int(self.target_valid.sum())


def with_index(example: Any, index: int) -> Any:
    """Return the example with another index; it is a named tuple or a dataclass."""
    if isinstance(example, tuple):
        return cast(Any, example)._replace(index=index)
    return replace(example, index=index)


def collate(examples: Sequence[Example]) -> Batch:
    if not examples:
        raise ValueError("pairs are missing: a batch has at least one")
    source, source_valid = padded([[*example.source, END] for example in examples])
    target_in, target_valid = padded([[START, *example.target] for example in examples])
    target_out, _ = padded([[*example.target, END] for example in examples])
    indices = torch.tensor([example.index for example in examples])
    guide = (
        None
        if examples[0].links is None
        else alignment_guide(examples, target_out.shape[1], source.shape[1])
    )
    return Batch(indices, source, source_valid, target_in, target_out, target_valid, guide)


def alignment_guide(
    examples: Sequence[Example], target_length: int, source_length: int
) -> Float[Tensor, "b t s"]:
    """The links of each target token, in equal shares; a row without any is zero."""
    table = np.zeros((len(examples), target_length, source_length), np.float32)
    for row, example in enumerate(examples):
        if example.links is None:
            raise ValueError(f"pair {example.index} has no links, but the first of its batch has")
        table[row, example.links[:, 0], example.links[:, 1]] = 1.0
    return torch.from_numpy(table / np.maximum(table.sum(-1, keepdims=True), 1.0))


def padded(rows: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "b t"], Bool[Tensor, "b t"]]:
    """Rows filled up to the longest, and what of it is real."""
    length = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[PAD] * (length - len(row))] for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(length) < lengths[:, None]
