"""The best spans of positions, from energies of their starts and ends.

b: batch   p: 1 + positions; index 0 means "no span"   k: spans
"""

from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

INF = float("inf")


class Spans(NamedTuple):
    """The best spans, best first, with their log-odds against "no span".

    `total` is the log of the summed odds of all spans. A score of -inf marks a missing span.
    """

    scores: Float[Tensor, "b k"]
    starts: Int[Tensor, "b k"]
    ends: Int[Tensor, "b k"]  # inclusive
    total: Float[Tensor, " b"]


def best_spans(
    starts: Float[Tensor, "b p"], ends: Float[Tensor, "b p"], max_length: int, limit: int = 20
) -> Spans:
    """Return the best `limit` spans of 1 to `max_length` positions; energies of padding are -inf.

    The score log p(s) p(e) / (p(none) p(none)) needs no sum over positions. So scores of different
    texts, or of windows of one text, can be compared.
    """
    first, last = starts[:, 1:] - starts[:, :1], ends[:, 1:] - ends[:, :1]
    width = min(max_length, first.shape[1])
    last = F.pad(last, (0, width - 1), value=-INF)
    table = (first[..., None] + last.unfold(1, width, 1)).flatten(1)  # start * width + length - 1
    scores, flat_index = table.topk(min(limit, table.shape[1]))
    first_positions = flat_index.div(width, rounding_mode="floor")
    return Spans(scores, first_positions, first_positions + flat_index % width, table.logsumexp(1))
