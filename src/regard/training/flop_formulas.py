"""Floating-point operations that torch's counter does not know: kernels for CPUs, sums in place.

The functions are called with the shapes of the arguments of an operation.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

from regard.kernels.linear import HAS_ONEDNN


def attention_flops(
    query: torch.Size,
    keys: torch.Size,
    values: torch.Size,
    *_: object,
    attn_mask: object = None,
    scale: object = None,
    out_shape: object = None,
) -> int:
    del attn_mask, scale, out_shape
    return sdpa_flop_count(query, keys, values)


def attention_gradient_flops(
    gradient: torch.Size,
    query: torch.Size,
    keys: torch.Size,
    values: torch.Size,
    *_: object,
    attn_mask: object = None,
    scale: object = None,
    out_shape: object = None,
) -> int:
    del attn_mask, scale, out_shape
    return sdpa_backward_flop_count(gradient, query, keys, values)


def linear_flops(
    inputs: torch.Size, weight: torch.Size, *_: object, out_shape: object = None
) -> int:
    """2 n d e for n rows of width d, and an output of width e."""
    del out_shape
    return 2 * inputs.numel() * weight[0]


def added_product_flops(
    total: torch.Size,
    first: torch.Size,
    second: torch.Size,
    *,
    beta: object = 1,
    alpha: object = 1,
    out_shape: object = None,
) -> int:
    """2 b n d e for the product of [b n d] and [b d e], which is added to a tensor in place."""
    del total, beta, alpha, out_shape
    return 2 * first.numel() * second[-1]


FLOPS_BY_OPERATION: dict[Any, Callable[..., int]] = {
    torch.ops.aten.addmm_: added_product_flops,
    torch.ops.aten.baddbmm_: added_product_flops,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention_flops,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_gradient_flops,
}
if HAS_ONEDNN:
    FLOPS_BY_OPERATION[torch.ops.mkldnn._linear_pointwise] = linear_flops
