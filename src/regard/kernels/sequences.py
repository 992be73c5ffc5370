"""A GRU over sequences in inference, with one call of a kernel for all of its steps.

n: positions   d: width of the input   h: units   b: sequences   t: steps
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.kernels import compiled
from regard.kernels.gru import address
from regard.kernels.linear import find_or_make
from regard.kernels.panels import NO_PRODUCT, pack_panels
from regard.kernels.prepared import Affine


class StepPlaces(NamedTuple):
    """The number of rows of each step, the position of the first, and the way to the next one."""

    counts_and_firsts: Int[Tensor, "2 t"]
    row_step: int

    @staticmethod
    def of_batch(rows: int, steps: int) -> "StepPlaces":
        """Return the places in a batch whose rows have the same length."""
        return StepPlaces(torch.stack([torch.full((steps,), rows), torch.arange(steps)]), steps)

    @staticmethod
    def of_packed(sizes: Sequence[int]) -> "StepPlaces":
        """Return the places in packed steps, which have fewer and fewer rows."""
        counts = torch.tensor(sizes)
        return StepPlaces(torch.stack([counts, counts.cumsum(0) - counts]), 1)


class GruWeights:
    """The products of a GRU, and the table of their addresses."""

    def __init__(self, weights: Sequence[Tensor], *, resets_before: bool):
        weight_ih, weight_hh, bias_ih, bias_hh = weights
        hidden = weight_hh.shape[1]
        gates, fresh = weight_hh.split([2 * hidden, hidden])
        self.products = (
            pack_panels([Affine(weight_ih, bias_ih + bias_hh if resets_before else bias_ih)]),
            pack_panels([Affine(gates, None) if resets_before else Affine(weight_hh, bias_hh)]),
            pack_panels([Affine(fresh, None)]) if resets_before else NO_PRODUCT,
        )
        numbers = [number for product in self.products for number in product.numbers]
        self.table = torch.tensor([*numbers, hidden, resets_before])


def run_gru(
    weights: Sequence[Tensor],
    x: Float[Tensor, "n d"],
    s: Float[Tensor, "b h"],
    places: StepPlaces,
    outputs: tuple[Float[Tensor, "n o"], int],
    *,
    resets_before: bool,
    is_backward: bool,
) -> Float[Tensor, "b h"]:
    """Write the states into `outputs`, from a column on; return the last state of each row."""

    def make() -> GruWeights:
        return GruWeights(weights, resets_before=resets_before)

    kept = find_or_make((GruWeights, resets_before), weights, make)
    x, s, (table, row_step) = x.contiguous(), s.clone(), places
    compiled.native.gru_sequence(  # pyright: ignore[reportOptionalMemberAccess] - see the callers
        *(kept.table.data_ptr(), x.data_ptr(), len(x), table[0].data_ptr(), table[1].data_ptr()),
        *(table.shape[1], row_step, is_backward, s.data_ptr(), *address(*outputs)),
        *(len(s), torch.get_num_threads()),
    )
    return s
