"""The additive energy without its q x k x h intermediate.

Autograd would keep tanh(W q + U h) for every query, slot and hidden unit: 330 MB for 64 sentences
of 50 words and 512 units. This module computes it for a few queries at a time, and computes it
again for the gradient.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from regard.attention.autograd import AutogradContext

MAX_BLOCK_ELEMENTS = 2**20  # of the intermediate: 4 MB in float32, which fits into a CPU cache


def tanh_energy(
    query: Float[Tensor, "*b q h"], keys: Float[Tensor, "*#b k h"], v: Float[Tensor, "*heads h"]
) -> Float[Tensor, "*b q k"]:
    """e = v . tanh(query + key) for each pair; `v` is one vector, or one per head (axis -3)."""
    lead, dtype = query.shape[:-2], torch.promote_types(query.dtype, keys.dtype)
    rows = query.to(dtype).reshape(-1, *query.shape[-2:])
    slots = keys.to(dtype).expand(*lead, *keys.shape[-2:]).reshape(-1, *keys.shape[-2:])
    if v.ndim > 1:
        v = v.expand(*lead, -1).reshape(-1, v.shape[-1])
    energy = TanhEnergy.apply(rows, slots, v.to(dtype))
    return energy.reshape(*lead, *energy.shape[-2:])


class TanhEnergy(Function):
    """query [n q h], keys [n k h], v [h] or [n h] -> energy [n q k]."""

    @staticmethod
    def forward(ctx: AutogradContext, query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, v)
        energy = query.new_empty(*query.shape[:2], keys.shape[1])
        for rows, queries in blocks(query, keys):
            tanh = (query[rows, queries, None] + keys[rows, None]).tanh_()
            if v.ndim == 1:
                energy[rows, queries] = tanh @ v
            else:
                energy[rows, queries] = (tanh @ v[rows, None, :, None]).squeeze(-1)
        return energy

    @staticmethod
    def backward(ctx: AutogradContext, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, keys, v = ctx.saved_tensors
        grad_query, grad_keys = torch.empty_like(query), torch.zeros_like(keys)
        grad_v = torch.zeros_like(v)
        for rows, queries in blocks(query, keys):
            grad = grads[0][rows, queries]
            tanh = (query[rows, queries, None] + keys[rows, None]).tanh_()
            if v.ndim == 1:
                grad_v += grad.flatten() @ tanh.flatten(0, 2)
                slope = grad[..., None] * v
            else:
                grad_v[rows] += (grad.flatten(1)[:, None] @ tanh.flatten(1, 2)).squeeze(1)
                slope = grad[..., None] * v[rows, None, None]
            slope = torch.ops.aten.tanh_backward(slope, tanh)
            grad_query[rows, queries] = slope.sum(2)
            grad_keys[rows] += slope.sum(1)
        return grad_query, grad_keys, grad_v


def blocks(query: Tensor, keys: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield slices of rows and queries with an intermediate of at most MAX_BLOCK_ELEMENTS.

    A block holds at least one query, even if that query alone exceeds the limit.
    """
    rows, queries = query.shape[:2]
    elements_per_query = max(1, keys[0].numel() if len(keys) else 1)
    rows_per_block = max(1, min(rows, MAX_BLOCK_ELEMENTS // elements_per_query))
    queries_per_block = max(
        1, min(queries, MAX_BLOCK_ELEMENTS // (elements_per_query * rows_per_block))
    )
    for row in range(0, rows, rows_per_block):
        for first in range(0, queries, queries_per_block):
            yield slice(row, row + rows_per_block), slice(first, first + queries_per_block)
