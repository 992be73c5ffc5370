"""A layer of GRUs in inference: a call of a kernel for each direction.

b: batch   t: steps   d: width of the input   h: units   n: all real steps
"""

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.gru import can_run_kernels
from regard.kernels.sequences import StepPlaces, run_gru
from regard.layers.cells import GRU, Cell, RecurrentState


def can_run_gru(cells: Sequence[Cell], data: Tensor) -> bool:
    """Return whether the kernel computes what these cells do, one for each direction."""
    return all(type(cell) is GRU and cell.gain is None for cell in cells) and can_run_kernels(
        data.contiguous(), *(weight for cell in cells for weight in cell.weights)
    )


def run_gru_layer(
    cells: Sequence[Cell],
    data: Float[Tensor, "b t d"] | Float[Tensor, "n d"],
    state: RecurrentState,
    sizes: Sequence[int] | None,
) -> tuple[Tensor, RecurrentState]:
    """Return the outputs and the last state; `sizes` are the rows of each step of packed data."""
    places = StepPlaces.of_batch(*data.shape[:2]) if sizes is None else StepPlaces.of_packed(sizes)
    hidden = cells[0].output_dim
    outputs = data.new_empty(*data.shape[:-1], len(cells) * hidden)
    finals = [
        run_gru(
            cell.weights,
            data.flatten(0, -2),
            state[0][index],
            places,
            (outputs.flatten(0, -2), index * hidden),
            resets_before=cast("GRU", cell).reset == "before",
            is_backward=index > 0,
        )
        for index, cell in enumerate(cells)
    ]
    return outputs, (torch.stack(finals),)
