"""A step of a GRU in inference, by kernels in C++ (the equations are those of `layers.cells.GRU`).

n: rows   h: units
"""

from collections.abc import Callable
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor as is_transformed

from regard.kernels import compiled
from regard.kernels.prepared import Affine, PreparedLinear

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
    return (
        not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
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
