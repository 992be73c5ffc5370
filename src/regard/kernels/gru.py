"""A step of a GRU by kernels in C++ (the equations are those of `layers.cells.GRU`).

In inference, a step has everything prepared that does not depend on the state. In training, two
functions with gradients stand for a dozen operations each.

n: rows   h: units
"""

from collections.abc import Callable
from types import ModuleType
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor as is_transformed

from regard.kernels import compiled
from regard.kernels.prepared import Affine, PreparedLinear
from regard.kernels.shared import StepContext

FLOAT_BYTES = 4
GruStep = Callable[[Tensor, Tensor], Tensor]  # (projected input [n 3h], s [n h]) -> s' [n h]


def gru_step(
    weight_hh: Float[Tensor, "g h"], bias_hh: Float[Tensor, " g"], *, resets_before: bool
) -> GruStep | None:
    """Return the part of a step that depends on the state; None if torch has to compute it."""
    if not can_run_kernels(weight_hh, bias_hh) or compiled.native is None:
        return None
    hidden = weight_hh.shape[1]
    if resets_before:
        gates, new = weight_hh.split([2 * hidden, hidden])
        product, new_product = (
            PreparedLinear([Affine(gates, None)]),
            PreparedLinear([Affine(new, None)]),
        )
    else:
        product, new_product = PreparedLinear([Affine(weight_hh, bias_hh)]), None
    kernels, no_input = compiled.native, weight_hh.new_zeros(3 * hidden)

    def step(projected: Tensor, s: Tensor) -> Tensor:
        # these tensors have to live as long as their addresses are used
        projected, s, of_state = projected.contiguous(), s.contiguous(), product(s)
        return next_gru_state(
            kernels,
            address(projected, 0),
            (no_input.data_ptr(), 0),
            address(of_state, 0),
            s,
            new_product,
        )

    return step


def can_run_kernels(*weights: Tensor) -> bool:
    """Return whether nothing needs a gradient, and kernels can read these weights."""
    return not torch.is_grad_enabled() and can_read(*weights)


def can_train_by_kernels(weight_hh: Tensor) -> bool:
    """Return whether `GruGates` and `GruState` may stand for operations of torch."""
    return torch.is_grad_enabled() and can_read(weight_hh)


def can_read(*weights: Tensor) -> bool:
    return (
        not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and not any(map(is_transformed, weights))
        and compiled.can_use_native(*weights)
    )


def next_gru_state(
    kernels: ModuleType,
    a: tuple[int, int],
    b: tuple[int, int],
    of_state: tuple[int, int],
    s: Float[Tensor, "n h"],
    new_product: PreparedLinear | None,
) -> Float[Tensor, "n h"]:
    """Return s' from two parts of the input product, and that of the state.

    They are addresses and numbers in a row, each of 3 h columns. With `new_product`, the reset gate
    is before the product of the new state, and the product of the state has 2 h columns.
    """
    next_s, hidden, size = torch.empty_like(s), s.shape[1], s.shape
    if new_product is None:
        kernels.gru_step(*a, *b, *of_state, s.data_ptr(), next_s.data_ptr(), *size)
        return next_s
    reset, keep = torch.empty_like(s), torch.empty_like(s)
    addresses = s.data_ptr(), reset.data_ptr(), keep.data_ptr()
    kernels.gru_gates(*a, *b, *of_state, *addresses, *size)
    new, first = new_product(reset), FLOAT_BYTES * 2 * hidden
    kernels.gru_state(
        *(a[0] + first, a[1], b[0] + first, b[1], *address(new, 0)),
        *(keep.data_ptr(), s.data_ptr(), next_s.data_ptr()),
        *size,
    )
    return next_s


def address(matrix: Float[Tensor, "n d"], column: int) -> tuple[int, int]:
    """Return the address of a column of a contiguous matrix, and the numbers in a row."""
    return matrix.data_ptr() + FLOAT_BYTES * column, matrix.shape[1]


class GruGates(torch.autograd.Function):
    """raw [n 2h], s [n h] -> r s and z, with r, z = sigma(raw)."""

    @staticmethod
    def forward(ctx: StepContext, raw: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        raw, s = raw.contiguous(), s.contiguous()
        ctx.save_for_backward(raw, s)
        reset, keep, zeros = torch.empty_like(s), torch.empty_like(s), raw.new_zeros(raw.shape[1])
        addresses = s.data_ptr(), reset.data_ptr(), keep.data_ptr()
        nothing = (zeros.data_ptr(), 0)
        loaded_kernels().gru_gates(*address(raw, 0), *nothing, *nothing, *addresses, *s.shape)
        return reset, keep

    @staticmethod
    def backward(ctx: StepContext, *grads: Tensor) -> tuple[Tensor, Tensor]:
        raw, s = ctx.saved_tensors
        of_reset, of_keep = (grad.contiguous() for grad in grads)
        if torch.is_grad_enabled():  # the pass itself will be differentiated
            r, z = raw.sigmoid().chunk(2, -1)
            slopes = of_reset * s * r * (1 - r), of_keep * z * (1 - z)
            return torch.cat(slopes, -1), of_reset * r
        of_raw, of_s = torch.empty_like(raw), torch.empty_like(s)
        tensors = raw, s, of_reset, of_keep, of_raw, of_s
        loaded_kernels().gru_gates_gradient(*map(Tensor.data_ptr, tensors), *s.shape)
        return of_raw, of_s


class GruState(torch.autograd.Function):
    """raw [n h], z [n h], s [n h] -> z s + (1 - z) tanh(raw)."""

    @staticmethod
    def forward(ctx: StepContext, raw: Tensor, keep: Tensor, s: Tensor) -> Tensor:
        raw, keep, s = raw.contiguous(), keep.contiguous(), s.contiguous()
        ctx.save_for_backward(raw, keep, s)
        next_s, zeros = torch.empty_like(s), raw.new_zeros(raw.shape[1])
        addresses, nothing = (keep.data_ptr(), s.data_ptr(), next_s.data_ptr()), zeros.data_ptr()
        loaded_kernels().gru_state(*address(raw, 0), nothing, 0, nothing, 0, *addresses, *s.shape)
        return next_s

    @staticmethod
    def backward(ctx: StepContext, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        raw, keep, s = ctx.saved_tensors
        grad = grads[0].contiguous()
        if torch.is_grad_enabled():  # the pass itself will be differentiated
            candidate = raw.tanh()
            slope = grad * (1 - keep) * (1 - candidate * candidate)
            return slope, grad * (s - candidate), grad * keep
        of_raw, of_keep, of_s = (torch.empty_like(part) for part in (raw, keep, s))
        tensors = raw, keep, s, grad, of_raw, of_keep, of_s
        loaded_kernels().gru_state_gradient(*map(Tensor.data_ptr, tensors), s.numel())
        return of_raw, of_keep, of_s


def loaded_kernels() -> ModuleType:
    """Return the compiled module, which callers have found."""
    return cast("ModuleType", compiled.native)
