"""The parts of a step of a transformer block between its products, in inference.

Each function is one kernel in C++ (`native/transformer.cpp`), or a series of operations of torch.

a: inputs   b: rows of one input   n = a * b: rows   h: heads   g: groups   s: slots   d: width
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int32
from torch import Tensor, nn

from regard.kernels.compiled import native

# A kernel that keeps Python's lock delays other threads; handing it over takes as long as this
# number of products.
MAX_LOCKED_PRODUCTS = 100_000


class Norm(NamedTuple):
    """The arguments of `torch.layer_norm`."""

    shape: tuple[int, ...]
    weight: Tensor
    bias: Tensor
    eps: float

    @staticmethod
    def of(layer: nn.LayerNorm) -> "Norm":
        return Norm(layer.normalized_shape, layer.weight, layer.bias, layer.eps)

    def __call__(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        return torch.layer_norm(x, *self)


def add_and_norm(
    x: Float[Tensor, "n d"], change: Float[Tensor, "n d"], norm: Norm | None
) -> Float[Tensor, "n d"]:
    """Return LN(x + change), or the sum without a norm; `change` is overwritten."""
    if native is None or not is_plain(change, x):
        change += x
        return change if norm is None else norm(change)
    gain, shift, epsilon = (
        (0, 0, 0.0) if norm is None else (norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps)
    )
    native.finish_rows(
        *(change.data_ptr(), 0, 0, 0, x.data_ptr(), gain, shift, epsilon), *change.shape
    )
    return change


def is_plain(*tensors: Tensor) -> bool:
    """Return whether these are contiguous float32 tensors in the memory of the processor."""
    return all(t.dtype is torch.float32 and t.is_cpu and t.is_contiguous() for t in tensors)


class StepSlots(NamedTuple):
    """Keys and values of one layer, and the new ones, which belong into the last slot.

    `mask` is 0 at slots that may be read, and -inf at others. With `owners`, the keys have a row
    for each row of a search, and slot s of row n is that of the row `owners[n, s]`.
    """

    keys: Float[Tensor, "a g s dh"]
    values: Float[Tensor, "a g s dh"]
    mask: Float[Tensor, "a 1 1 s"] | None = None
    owners: Int32[Tensor, "n s"] | None = None
    new: tuple[Float[Tensor, "a g dh"], Float[Tensor, "a g dh"]] | None = None


def attend_step(
    query: Float[Tensor, "n h dh"], slots: StepSlots, scale: float
) -> Float[Tensor, "n d"]:
    """softmax(scale q k' + mask) v for one position of each row; the heads are joined."""
    keys, values = slots.keys, slots.values
    if native is None or not can_attend(query, slots):
        return attend_by_torch(query, slots, scale)
    (rows, heads, dim), (inputs, groups, length, _) = query.shape, keys.shape
    context = query.new_empty(rows, heads * dim)
    owners, owner_step = (0, 0) if slots.owners is None else address_and_step(slots.owners)
    new_keys, new_values = (0, 0) if slots.new is None else (t.data_ptr() for t in slots.new)
    is_long = rows * heads * length * dim > MAX_LOCKED_PRODUCTS
    attend = native.attend_step_unlocked if is_long else native.attend_step
    attend(
        *(query.data_ptr(), query.stride(0), keys.data_ptr(), values.data_ptr()),
        *keys.stride()[:3],
        0 if slots.mask is None else slots.mask.data_ptr(),
        *(owners, owner_step, new_keys, new_values, context.data_ptr()),
        *(rows, 1 if owners else rows // inputs, heads, groups, length, dim, scale),
    )
    return context


def address_and_step(table: Tensor) -> tuple[int, int]:
    return table.data_ptr(), table.stride(0)


def can_attend(query: Tensor, slots: StepSlots) -> bool:
    """Return whether the kernel can read these tensors."""
    keys, values, mask, owners, new = slots
    return (
        query.dtype is keys.dtype is torch.float32
        and query.is_cpu
        and query.stride()[1:] == (query.shape[2], 1)
        and keys.stride() == values.stride()
        and keys.stride(3) == 1
        and (mask is None or mask.is_contiguous())
        and (owners is None or owners.stride(1) == 1)
        and (new is None or all(t.stride() == query.stride() for t in new))
    )


def attend_by_torch(
    query: Float[Tensor, "n h dh"], slots: StepSlots, scale: float
) -> Float[Tensor, "n d"]:
    keys, values, mask, owners, new = slots
    rows, heads = query.shape[:2]
    if new is not None:
        keys[:rows, :, -1], values[:rows, :, -1] = new
    if owners is not None:
        keys, values = select_slots(keys, owners), select_slots(values, owners)
    inputs, groups = keys.shape[:2]
    parts = query.unflatten(0, (inputs, rows // inputs)).transpose(1, 2)  # [a h b dh]
    context = F.scaled_dot_product_attention(
        parts, keys, values, attn_mask=mask, scale=scale, enable_gqa=heads != groups
    )
    return context.transpose(1, 2).flatten(2).flatten(0, 1)


def select_slots(
    slots: Float[Tensor, "*l m g s dh"], owners: Int32[Tensor, "n s"]
) -> Float[Tensor, "*l n g s dh"]:
    """Return the slots of each row, which belong to other rows."""
    by_row = slots.movedim((-4, -2), (0, 1))
    selected = by_row[owners.long(), torch.arange(owners.shape[1])]
    return selected.movedim((0, 1), (-4, -2))
