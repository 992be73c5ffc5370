"""The best of a long row, fast: maxima of pieces first, then only the pieces that matter.

`torch.topk` and `torch.argmax` look at every number by itself; `amax` over contiguous pieces is
vectorised, and about ten times faster on a CPU (320 rows of 10,000: 0.8 ms, not 12). The m greatest
of a row are in the m pieces with the greatest maxima. Both ways find the same, so that it does not
matter that the size of a batch decides between them.

a: inputs   b: beams   n = a * b: rows   v: vocabulary   m: how many are wanted
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

PIECE = 64
SMALL = 2**16  # fewer numbers are not worth cutting up: the calls cost more than the work
MANY = 32  # nor if the pieces that matter hold more than one number in so many


def first(rows: Float[Tensor, "n v"]) -> Int[Tensor, " n"]:
    """Where the greatest number of each row is; the lowest id, if there are several."""
    if rows.numel() <= SMALL or rows.shape[1] < 2 * PIECE:
        return rows.argmax(1)
    columns = maxima(rows).argmax(1, keepdim=True) * PIECE + torch.arange(PIECE)
    columns = columns.clamp(max=rows.shape[1] - 1)  # the last column, again, is never the first
    return columns.gather(1, rows.gather(1, columns).argmax(1, keepdim=True))[:, 0]


def best(
    log_probs: Float[Tensor, "n v"], scores: Float[Tensor, "a b"], wanted: int
) -> tuple[Float[Tensor, "a m"], Int[Tensor, "a m"], Int[Tensor, "a m"]]:
    """The greatest `scores + log_probs` of each input: values, beams, ids; greatest first.

    Among equals the earlier beam comes first, then the lower id. Sums are in the scores' precision.
    """
    size = log_probs.shape[1]
    total = scores.shape[1] * size
    wanted = min(wanted, total)
    spare = min(wanted + 1, total)  # one more, to see whether a tie is cut in two
    if log_probs.numel() <= SMALL or total < MANY * spare * PIECE:
        values, flat = sums(log_probs, scores).topk(spare, 1)
    else:
        values, flat = top_pieces(log_probs, scores, spare)
    ties = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)
    if ties.any():
        values, flat = ranked(values, flat)
        cut = ties[:, wanted - 1 :].nonzero()[:, 0]
        if len(cut):
            values[cut, :wanted], flat[cut, :wanted] = sorted_whole(log_probs, scores, cut, wanted)
    flat = flat[:, :wanted]
    return values[:, :wanted], flat // size, flat % size


def sums(log_probs: Float[Tensor, "n v"], scores: Float[Tensor, "a b"]) -> Float[Tensor, "a bv"]:
    """scores + log_probs of every beam of an input in one row, one beam after the other."""
    return (log_probs.view(*scores.shape, -1) + scores[..., None]).flatten(1)


def top_pieces(
    log_probs: Float[Tensor, "n v"], scores: Float[Tensor, "a b"], wanted: int
) -> tuple[Float[Tensor, "a m"], Int[Tensor, "a m"]]:
    """The greatest sums of each input, and where they are (beam * v + id); looks at few of them."""
    (inputs, beams), size = scores.shape, log_probs.shape[1]
    tops = maxima(log_probs).view(inputs, beams, -1) + scores[..., None]
    pieces = tops.shape[2]
    _, at = tops.flatten(1).topk(min(wanted, beams * pieces), 1, sorted=False)
    beam = at // pieces
    columns = (at % pieces)[..., None] * PIECE + torch.arange(PIECE)
    outside = columns >= size
    columns.clamp_(max=size - 1)
    rows = torch.arange(inputs)[:, None] * beams + beam
    found = log_probs[rows[..., None], columns] + scores.gather(1, beam)[..., None]
    values, at = found.masked_fill_(outside, -torch.inf).flatten(1).topk(wanted, 1)
    return values, (beam[..., None] * size + columns).flatten(1).gather(1, at)


def maxima(rows: Float[Tensor, "n v"]) -> Float[Tensor, "n p"]:
    """The maximum of each piece of each row; the last piece may be shorter."""
    size = rows.shape[1]
    even = size - size % PIECE
    tops = rows[:, :even].unflatten(1, (-1, PIECE)).amax(2)
    return tops if even == size else torch.cat([tops, rows[:, even:].amax(1, keepdim=True)], 1)


def ranked(
    values: Float[Tensor, "a m"], flat: Int[Tensor, "a m"]
) -> tuple[Float[Tensor, "a m"], Int[Tensor, "a m"]]:
    """Greatest value first; among equals, the one that comes first in its row."""
    flat, order = flat.sort(1)
    values, again = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, flat.gather(1, again)


def sorted_whole(
    log_probs: Float[Tensor, "n v"],
    scores: Float[Tensor, "a b"],
    inputs: Int[Tensor, " c"],
    wanted: int,
) -> tuple[Float[Tensor, "c m"], Int[Tensor, "c m"]]:
    """The slow way, for inputs whose last place is shared by equals: which of them is by order."""
    told = log_probs.view(*scores.shape, -1)[inputs].flatten(0, 1)
    values, flat = sums(told, scores[inputs]).sort(dim=1, descending=True, stable=True)
    return values[:, :wanted], flat[:, :wanted]
