"""Fast top-k and argmax of long rows: first over maxima of pieces, then within the best pieces.

`torch.topk` and `torch.argmax` are not vectorized on a CPU; `amax` over contiguous pieces is, and
takes 0.8 ms rather than 12 for 320 rows of 10,000. The m greatest numbers of a row are in the m
pieces with the greatest maxima. Both methods return the same numbers, so the size of a batch may
decide between them. Kernels in C++ read each row once, and return the same numbers too.

a: inputs   b: beams   n = a * b: rows   v: vocabulary   m: number of results
"""

from types import ModuleType

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.kernels import compiled

PIECE_SIZE = 64
# Up to this size, `torch.topk` is faster than pieces.
MAX_NUMBERS_FOR_DIRECT_TOPK = 2**16
MIN_PIECES_PER_RESULT = 32  # with fewer pieces, `torch.topk` is faster
MAX_NATIVE_RESULTS = 128  # the kernel inserts each result into a sorted list


def fast_argmax(rows: Float[Tensor, "n v"]) -> Int[Tensor, " n"]:
    """Return the column of the greatest number of each row; the first among equals."""
    if compiled.native is not None and compiled.can_use_native(rows):
        columns = torch.empty(len(rows), dtype=torch.long)
        compiled.native.argmax_rows(
            rows.data_ptr(), columns.data_ptr(), *rows.shape, torch.get_num_threads()
        )
        return columns
    if rows.numel() <= MAX_NUMBERS_FOR_DIRECT_TOPK or rows.shape[1] < 2 * PIECE_SIZE:
        return rows.argmax(1)
    offsets = torch.arange(PIECE_SIZE, device=rows.device)
    columns = piece_maxima(rows).argmax(1, keepdim=True) * PIECE_SIZE + offsets
    columns = columns.clamp(max=rows.shape[1] - 1)  # repeats of the last column are never the first
    return columns.gather(1, rows.gather(1, columns).argmax(1, keepdim=True))[:, 0]


def topk_candidates(
    log_probs: Float[Tensor, "n v"], scores: Float[Tensor, "a b"], k: int
) -> tuple[Float[Tensor, "a m"], Int[Tensor, "a m"], Int[Tensor, "a m"]]:
    """Return the greatest `scores + log_probs` of each input: values, beams, ids; greatest first.

    Among equals, the earlier beam comes first, then the lower id. Sums have the precision of
    `scores`.
    """
    size = log_probs.shape[1]
    total = scores.shape[1] * size
    k = min(k, total)
    if (
        compiled.native is not None
        and compiled.can_use_native(log_probs)
        and scores.dtype is torch.float64
        and k <= MAX_NATIVE_RESULTS
    ):
        return native_topk(compiled.native, log_probs, scores, k)
    k_and_next = min(k + 1, total)  # one more, to detect a tie at the last result
    if (
        log_probs.numel() <= MAX_NUMBERS_FOR_DIRECT_TOPK
        or total < MIN_PIECES_PER_RESULT * k_and_next * PIECE_SIZE
    ):
        values, flat_ids = total_scores(log_probs, scores).topk(k_and_next, 1)
    else:
        values, flat_ids = topk_by_pieces(log_probs, scores, k_and_next)
    ties = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)
    if ties.any():
        values, flat_ids = sort_with_ties(values, flat_ids)
        for index in ties[:, k - 1 :].nonzero()[:, 0].tolist():
            chosen = choose_among_ties(log_probs, scores, index, values[index, :k])
            flat_ids[index, k - len(chosen) : k] = chosen
    flat_ids = flat_ids[:, :k]
    return values[:, :k], flat_ids // size, flat_ids % size


def native_topk(
    native: ModuleType, log_probs: Float[Tensor, "n v"], scores: Float[Tensor, "a b"], k: int
) -> tuple[Float[Tensor, "a m"], Int[Tensor, "a m"], Int[Tensor, "a m"]]:
    """Return what `topk_candidates` returns, by one pass over the log-probabilities."""
    (inputs, beams), size = scores.shape, log_probs.shape[1]
    values, flat_ids = scores.new_empty(inputs, k), torch.empty(inputs, k, dtype=torch.long)
    scores = scores.contiguous()
    native.top_sums(
        *(log_probs.data_ptr(), scores.data_ptr(), values.data_ptr(), flat_ids.data_ptr()),
        *(inputs, beams, size, k, torch.get_num_threads()),
    )
    return values, flat_ids // size, flat_ids % size


def total_scores(
    log_probs: Float[Tensor, "n v"], scores: Float[Tensor, "a b"]
) -> Float[Tensor, "a bv"]:
    """Return scores + log_probs with all beams of an input in one row."""
    return (log_probs.view(*scores.shape, -1) + scores[..., None]).flatten(1)


def topk_by_pieces(
    log_probs: Float[Tensor, "n v"], scores: Float[Tensor, "a b"], k: int
) -> tuple[Float[Tensor, "a m"], Int[Tensor, "a m"]]:
    """Return the greatest sums of each input and their indices (beam * v + id), by pieces."""
    (inputs, beams), size = scores.shape, log_probs.shape[1]
    piece_scores = piece_maxima(log_probs).view(inputs, beams, -1) + scores[..., None]
    n_pieces = piece_scores.shape[2]
    _, flat_index = piece_scores.flatten(1).topk(min(k, beams * n_pieces), 1, sorted=False)
    beam = flat_index // n_pieces
    offsets = torch.arange(PIECE_SIZE, device=scores.device)
    columns = (flat_index % n_pieces)[..., None] * PIECE_SIZE + offsets
    outside = columns >= size
    columns.clamp_(max=size - 1)
    rows = torch.arange(inputs, device=scores.device)[:, None] * beams + beam
    candidate_scores = log_probs[rows[..., None], columns] + scores.gather(1, beam)[..., None]
    values, flat_index = candidate_scores.masked_fill_(outside, -torch.inf).flatten(1).topk(k, 1)
    return values, (beam[..., None] * size + columns).flatten(1).gather(1, flat_index)


def piece_maxima(rows: Float[Tensor, "n v"]) -> Float[Tensor, "n p"]:
    """Return the maximum of each piece of each row; the last piece may be shorter."""
    size = rows.shape[1]
    full_size = size - size % PIECE_SIZE
    piece_tops = rows[:, :full_size].unflatten(1, (-1, PIECE_SIZE)).amax(2)
    return (
        piece_tops
        if full_size == size
        else torch.cat([piece_tops, rows[:, full_size:].amax(1, keepdim=True)], 1)
    )


def sort_with_ties(
    values: Float[Tensor, "a m"], flat_ids: Int[Tensor, "a m"]
) -> tuple[Float[Tensor, "a m"], Int[Tensor, "a m"]]:
    """Sort by value, the greatest first; among equals, by index."""
    flat_ids, order = flat_ids.sort(1)
    values, value_order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, flat_ids.gather(1, value_order)


def choose_among_ties(
    log_probs: Float[Tensor, "n v"],
    scores: Float[Tensor, "a b"],
    input_index: int,
    best: Float[Tensor, " m"],
) -> Int[Tensor, " c"]:
    """Return the indices of the sums of an input that equal the last of the best: the lowest ones.

    There are as many as the best have of them.
    """
    log_probs = log_probs.view(*scores.shape, -1)[input_index]
    is_last = (log_probs + scores[input_index][:, None]).flatten() == best[-1]
    return is_last.nonzero()[: int((best == best[-1]).sum()), 0]
