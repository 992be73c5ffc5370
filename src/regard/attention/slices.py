"""Attention with dropout on a CPU, in slices of queries: memory linear in the length.

torch's fused kernel for CPUs has no dropout. Its replacement keeps all weights, [b h q k], for the
backward pass. Here the weights of one slice exist at a time; the backward pass makes them again.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

MAX_KEPT_QUERIES = 512  # up to so many, the weights are small, and keeping them is faster
QUERIES_PER_SLICE = 128


class FusedInputs(NamedTuple):
    """The arguments of the fused kernel, as [batch, heads, …]."""

    query: Tensor
    keys: Tensor
    values: Tensor
    mask: Tensor | None
    is_causal: bool

    def slice(self, first: int, last: int) -> "FusedInputs":
        """Return the arguments for these queries; a causal slice needs no later slots."""
        mask, slots = self.mask, last if self.is_causal else self.keys.shape[-2]
        if mask is not None and mask.shape[-2] > 1:
            mask = mask[..., first:last, :]
        query, keys = self.query[..., first:last, :], self.keys[..., :slots, :]
        return FusedInputs(query, keys, self.values[..., :slots, :], mask, self.is_causal)


def needs_slices(query: Tensor, dropout: float) -> bool:
    """Return whether torch would keep the weights of many queries for the backward pass."""
    return (
        dropout > 0
        and query.shape[-2] > MAX_KEPT_QUERIES
        and query.device.type == "cpu"
        and torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
    )


def attend_in_slices(inputs: FusedInputs, dropout: float, scale: float) -> Tensor:
    """Return the context of all queries; the weights of a slice are not kept."""
    queries = inputs.query.shape[-2]
    contexts = [
        checkpoint(
            attend_slice,
            *inputs.slice(first, min(first + QUERIES_PER_SLICE, queries)),
            first,
            dropout,
            scale,
            use_reentrant=False,
        )
        for first in range(0, queries, QUERIES_PER_SLICE)
    ]
    return torch.cat(contexts, -2)


def attend_slice(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    first: int,
    dropout: float,
    scale: float,
) -> Tensor:
    """Return the context of queries, of which `first` is the position of the first."""
    if is_causal:
        shape = (query.shape[-2], keys.shape[-2])
        mask = torch.ones(shape, dtype=torch.bool, device=query.device).tril(first)
    return F.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=mask,
        dropout_p=dropout,
        scale=scale,
        enable_gqa=query.shape[1] != keys.shape[1],
    )
