"""Stretches of positions, by what speaks for their first and for their last one.

b: batch   p: 1 + positions; in the place of the first stands "none at all"   n: positions
"""

from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

INF = float("inf")


class Spans(NamedTuple):
    """The best ones, best first, each by the log of its odds against none at all.

    `total` is the log of the sum of the odds of all. A score of -inf is no stretch.
    """

    scores: Float[Tensor, "b k"]
    starts: Int[Tensor, "b k"]
    ends: Int[Tensor, "b k"]  # the last position itself
    total: Float[Tensor, " b"]


def best_spans(
    starts: Float[Tensor, "b p"], ends: Float[Tensor, "b p"], max_length: int, limit: int = 20
) -> Spans:
    """Of all stretches of 1 to `longest` positions; energies of padding are -inf.

    log p(s) p(e) / (p(none) p(none)) needs no sum over positions, so it can be compared between
    texts, and between windows of one text.
    """
    first, last = starts[:, 1:] - starts[:, :1], ends[:, 1:] - ends[:, :1]
    width = min(max_length, first.shape[1])
    last = F.pad(last, (0, width - 1), value=-INF)
    table = (first[..., None] + last.unfold(1, width, 1)).flatten(1)  # from s, and so many further
    scores, flat_index = table.topk(min(limit, table.shape[1]))
    first_positions = flat_index.div(width, rounding_mode="floor")
    return Spans(scores, first_positions, first_positions + flat_index % width, table.logsumexp(1))
