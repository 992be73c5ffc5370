"""Layers of recurrent cells over sequences: stacked, bidirectional, over rows of unequal length.

b: batch   t: steps   d: input_dim   h: hidden_dim   l: layers * directions   n: all real steps
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_finite, check_positive, check_width
from regard.errors import InputError
from regard.layers.cells import Cell, Kernel, Recurrence, RecurrentState, check_dtype, check_state
from regard.layers.dropout import dropout
from regard.layers.gru_layer import can_run_gru, run_gru_layer
from regard.layers.precision import without_autocast


class Packing(NamedTuple):
    """The real steps of a right-padded batch, in the order of torch's PackedSequence.

    The order is by time, and longest row first. torch's packing rejects a row without a step; this
    one leaves it out.
    """

    shape: tuple[int, int]  # b, t
    flat_index: Int[Tensor, " n"]  # of each real step in the flattened batch: row * t + time
    rows: Int[Tensor, " r"]  # those with at least one step, longest first
    sizes: tuple[int, ...]  # number of rows that have a first step, a second, ...

    @classmethod
    def from_valid(cls, valid: Bool[Tensor, "b t"]) -> "Packing | None":
        """Return the packing, or None if every step of every row is real."""
        if bool((valid[:, 1:] & ~valid[:, :-1]).any()):
            raise InputError("valid must be padded on the right: a real step follows a padded one")
        sizes = tuple(n for n in valid.sum(0).tolist() if n)
        batch, steps = valid.shape
        if sum(sizes) == batch * steps:
            return None
        order = valid.sum(1).argsort(descending=True, stable=True)
        time, rank = valid[order].t().nonzero(as_tuple=True)
        rows = order[: sizes[0] if sizes else 0]
        return cls((batch, steps), order[rank] * steps + time, rows, sizes)

    def pack(self, padded: Float[Tensor, "b t d"]) -> Float[Tensor, "n d"]:
        return padded.flatten(0, 1).index_select(0, self.flat_index)

    def unpack(self, data: Float[Tensor, "n d"]) -> Float[Tensor, "b t d"]:
        """Return the steps in a padded batch, with zeros at padding."""
        batch, steps = self.shape
        flat = data.new_zeros(batch * steps, data.shape[1]).index_copy(0, self.flat_index, data)
        return flat.unflatten(0, (batch, steps))

    def repeat_over_steps(self, row_vectors: Float[Tensor, "b d"]) -> Float[Tensor, "n d"]:
        """Repeat the vector of each row at each of its steps."""
        return row_vectors.index_select(0, self.flat_index // self.shape[1])


class DropoutMasks(NamedTuple):
    """Masks of variational dropout, one for all steps of a sequence; None drops nothing."""

    inputs: tuple[Tensor | None, ...]  # one for each layer, [b, input_dim of the layer]
    states: tuple[Tensor | None, ...]  # one for each cell, [b, h]

    def select(self, rows: Int[Tensor, " r"]) -> "DropoutMasks":
        """Return the masks of these rows, in this order."""
        return DropoutMasks(*(tuple(m if m is None else m[rows] for m in group) for group in self))


class Recurrent(nn.Module):
    """h_t = cell(x_t, h_{t-1}) at every step, in stacked layers, in one or two directions.

    `cell` builds a cell from an input width and a hidden width: `LSTM`, or `partial(GRU,
    reset="before")`. A state has the tensors of the cell's state in torch's layout: [layers *
    directions, batch, hidden_dim], the two directions of a layer next to each other. If the cell
    has a projection, h has the width of the projection. Three kinds of dropout act in training:

    - `dropout` between the layers, a new mask at every step (Zaremba et al. 2014);
    - `input_dropout` on the input of each layer, and `state_dropout` on h_{t-1} where it enters a
      product: one mask for each sequence (Gal & Ghahramani 2016, with one mask for all gates).

    torch's fused kernels run where they compute the same function: LSTM without projection or clip,
    GRU with reset="after", Elman with tanh or relu. They need cells without `layer_norm`, and in
    training no `state_dropout`. Everything else is a loop over time, after one input product for
    all steps. Training on padded batches on a CPU is also a loop, which is faster there. Kernels
    and loop both skip padding, whatever it holds. Under autocast, all of this runs in the dtype of
    the weights.
    """

    def __init__(
        self,
        cell: Callable[[int, int], Cell],
        input_dim: int,
        hidden_dim: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_positive("layers", layers)
        rates = {"dropout": dropout, "input_dropout": input_dropout, "state_dropout": state_dropout}
        for name, rate in rates.items():
            if not 0 <= rate < 1:
                raise InputError(f"{name} must be in [0, 1), not {rate}")
        if dropout and layers == 1:
            raise InputError(f"dropout {dropout} needs at least two layers; it acts between them")
        self.input_dim, self.hidden_dim, self.layers = input_dim, hidden_dim, layers
        self.directions = 2 if bidirectional else 1
        self.dropout, self.input_dropout, self.state_dropout = dropout, input_dropout, state_dropout
        cells: list[Cell] = []
        for _ in range(layers):
            width = self.directions * cells[0].output_dim if cells else input_dim
            cells.extend(cell(width, hidden_dim) for _ in range(self.directions))
        self.cells = nn.ModuleList(cells)
        self.output_dim = self.directions * cells[0].output_dim

    def forward(
        self,
        inputs: Float[Tensor, "b t d"],
        valid: Bool[Tensor, "b t"] | None = None,
        state: RecurrentState | None = None,
        masks: DropoutMasks | None = None,
    ) -> tuple[Float[Tensor, "b t o"], RecurrentState]:
        """Return the outputs, 0 at padding, and the state of each row after its last real step.

        A row without a real step keeps its initial state. In training, `masks` are drawn here if
        they are None.
        """
        self.check(inputs, valid, state)
        weight = self.stack[0].weight_hh
        with without_autocast(weight):
            full_state = None if state is None else tuple(part.to(weight.dtype) for part in state)
            return self.run_sequence(inputs.to(weight.dtype), valid, full_state, masks)

    def run_sequence(
        self,
        inputs: Tensor,
        valid: Tensor | None,
        state: RecurrentState | None,
        masks: DropoutMasks | None,
    ) -> tuple[Tensor, RecurrentState]:
        """Run all layers over checked inputs in the dtype of the weights."""
        state = self.initial_state(inputs.shape[0]) if state is None else state
        masks = self.draw_masks(inputs.shape[0]) if masks is None else masks
        packing = None if valid is None else Packing.from_valid(valid)
        data = inputs if packing is None else packing.pack(inputs)
        check_finite("inputs", data)
        if packing is None:
            return self.run_layers(data, state, None, masks)
        if not packing.sizes:
            return inputs.new_zeros(*inputs.shape[:2], self.output_dim), state
        outputs, final = self.run_layers(data, select_state(state, packing.rows), packing, masks)
        pairs = zip(state, final, strict=True)
        return packing.unpack(outputs), tuple(s.index_copy(1, packing.rows, f) for s, f in pairs)

    def step(
        self, x: Float[Tensor, "b d"], state: RecurrentState, masks: DropoutMasks | None = None
    ) -> tuple[Float[Tensor, "b h"], RecurrentState]:
        """Run one step, for decoders; a loop of steps with the same `masks` is `forward`.

        Values are not checked: a search for NaN takes half the time of a small step.
        """
        if self.directions == 2:
            raise InputError("step needs a layer of one direction, but this one is bidirectional")
        if masks is None and self.has_variational_dropout:
            raise InputError("masks is missing; draw it once for each sequence: draw_masks(batch)")
        weight = self.stack[0].weight_hh
        if x.ndim != 2:
            raise InputError(f"x must be [batch, input_dim], not {list(x.shape)}")
        check_width("x", x, self.input_dim)
        check_dtype("x", x, weight)
        check_state(state, self.state_shapes(x.shape[0]), weight)
        with without_autocast(weight):
            full_state = tuple(part.to(weight.dtype) for part in state)
            return self.run_step(x.to(weight.dtype), full_state, masks)

    def run_step(
        self, x: Tensor, state: RecurrentState, masks: DropoutMasks | None
    ) -> tuple[Tensor, RecurrentState]:
        """Run one step of all layers on a checked input in the dtype of the weights."""
        new_states: list[RecurrentState] = []
        for index, (cell, *cell_state) in enumerate(zip(self.stack, *state, strict=True)):
            x = dropout(x, self.dropout, self.training and index > 0)
            x = x if masks is None else apply_mask(x, masks.inputs[index])
            state_mask = None if masks is None else masks.states[index]
            new_states.append(cell.advance(x, tuple(cell_state), state_mask))
            x = new_states[-1][0]
        return x, tuple(torch.stack(parts) for parts in zip(*new_states, strict=True))

    def initial_state(self, batch: int) -> RecurrentState:
        """Return zeros, one row for each sequence."""
        new_zeros = self.stack[0].weight_hh.new_zeros
        return tuple(new_zeros(shape) for shape in self.state_shapes(batch))

    def draw_masks(self, batch: int) -> DropoutMasks | None:
        """Draw masks of variational dropout for a batch; None if nothing would drop."""
        if not self.has_variational_dropout:
            return None
        firsts = self.stack[:: self.directions]
        return DropoutMasks(
            tuple(self.draw_mask(batch, cell.input_dim, self.input_dropout) for cell in firsts),
            tuple(
                self.draw_mask(batch, cell.output_dim, self.state_dropout) for cell in self.stack
            ),
        )

    def load_torch_weights(self, other: nn.RNNBase) -> "Recurrent":
        """Copy the weights of a torch.nn.RNN, LSTM or GRU of the same sizes."""
        ours = [weight for cell in self.stack for weight in cell.weights]
        theirs = list(other.parameters())
        if [weight.shape for weight in ours] != [weight.shape for weight in theirs]:
            raise InputError(f"other must have the sizes of this layer, not {other}")
        with torch.no_grad():
            for weight, source in zip(ours, theirs, strict=True):
                weight.copy_(source)
        return self

    @property
    def stack(self) -> list[Cell]:
        """The cells in the order of layers, the directions of a layer next to each other."""
        return [cast(Cell, cell) for cell in self.cells]

    @property
    def has_variational_dropout(self) -> bool:
        return self.training and bool(self.input_dropout or self.state_dropout)

    def draw_mask(self, batch: int, width: int, rate: float) -> Tensor | None:
        """Draw a dropout mask with mean 1; None if `rate` is 0."""
        if not rate:
            return None
        return dropout(self.stack[0].weight_hh.new_ones(batch, width), rate)

    def run_layers(
        self,
        data: Tensor,
        state: RecurrentState,
        packing: Packing | None,
        masks: DropoutMasks | None,
    ) -> tuple[Tensor, RecurrentState]:
        """Run all layers over [b t d], or over the packed [n d], in one call or layer by layer."""
        kernel = shared_kernel(self.stack)
        if packing is not None and torch.is_grad_enabled() and data.device.type == "cpu":
            # In torch's packed kernel, the gradient of each step has the size of the whole batch.
            # The loop trains in 0.6 to 0.9 of its time (benchmarks/recurrent.py, torch 2.13).
            kernel = None
        if kernel is not None and masks is None:
            return self.run_fused(kernel, self.stack, data, state, packing)
        finals: list[RecurrentState] = []
        for layer in range(self.layers):
            cell_range = slice(layer * self.directions, (layer + 1) * self.directions)
            cells, start = self.stack[cell_range], tuple(part[cell_range] for part in state)
            state_masks: Sequence[Tensor | None] = [None] * self.directions
            if layer and self.dropout:
                data = dropout(data, self.dropout, self.training)
            if masks is not None:
                data = apply_mask(data, masks.inputs[layer], packing)
                state_masks = [
                    None if m is None else select_mask_rows(m, packing)
                    for m in masks.states[cell_range]
                ]
            if all(mask is None for mask in state_masks) and can_run_gru(cells, data):
                sizes = None if packing is None else packing.sizes
                data, final = run_gru_layer(cells, data, start, sizes)
            elif kernel is not None and state_masks[0] is None:
                data, final = self.run_fused(kernel, cells, data, start, packing)
            else:
                data, final = run_unfused(cells, data, start, packing, state_masks)
            finals.append(final)
        return data, tuple(torch.cat(parts) for parts in zip(*finals, strict=True))

    def run_fused(
        self,
        kernel: Kernel,
        cells: list[Cell],
        data: Tensor,
        state: RecurrentState,
        packing: Packing | None,
    ) -> tuple[Tensor, RecurrentState]:
        """Run torch's kernel over one or more layers."""
        start = state[0] if len(state) == 1 else state
        weights = [weight for cell in cells for weight in cell.weights]
        layers, bidirectional = len(cells) // self.directions, self.directions == 2
        options = (weights, True, layers, self.dropout, self.training, bidirectional)
        if packing is None:
            outputs, *final = kernel(data, start, *options, True)
        else:
            outputs, *final = kernel(data, torch.tensor(packing.sizes), start, *options)
        return outputs, tuple(final)

    def check(self, inputs: Tensor, valid: Tensor | None, state: RecurrentState | None) -> None:
        if inputs.ndim != 3:
            raise InputError(f"inputs must be [batch, steps, input_dim], not {list(inputs.shape)}")
        check_width("inputs", inputs, self.input_dim)
        if not inputs.numel():
            raise InputError(
                f"inputs must have at least one row and one step, not shape {list(inputs.shape)}"
            )
        check_dtype("inputs", inputs, self.stack[0].weight_hh)
        if valid is not None:
            self.check_valid(valid, inputs.shape[:2])

        if state is not None:
            check_state(state, self.state_shapes(inputs.shape[0]), self.stack[0].weight_hh)
            for part in state:
                check_finite("state", part)

    def check_valid(self, valid: Tensor, shape: torch.Size) -> None:
        if valid.dtype != torch.bool:
            raise InputError(f"valid must be boolean (True: a real step), not {valid.dtype}")
        if valid.shape != shape:
            raise InputError(f"valid must be {list(shape)} like inputs, not {list(valid.shape)}")

    def state_shapes(self, batch: int) -> list[tuple[int, ...]]:
        """Return the shapes of the tensors in a state."""
        cells = len(self.cells)
        return [(cells, batch, width) for width in self.stack[0].state_widths]


def shared_kernel(cells: list[Cell]) -> Kernel | None:
    kernels = {cell.kernel for cell in cells}
    return kernels.pop() if len(kernels) == 1 else None


def select_state(state: RecurrentState, rows: Int[Tensor, " r"]) -> RecurrentState:
    """Return these rows of the batch, in this order, as beam search needs it."""
    return tuple(part.index_select(1, rows) for part in state)


def reversed_indices(valid: Bool[Tensor, "b t"]) -> Int[Tensor, "b t"]:
    """Return indices for `gather` that reverse the real steps of each row and keep padding."""
    step = torch.arange(valid.shape[1], device=valid.device)
    return torch.where(valid, valid.sum(1, keepdim=True) - 1 - step, step)


def run_unfused(
    cells: list[Cell],
    data: Tensor,
    state: RecurrentState,
    packing: Packing | None,
    state_masks: Sequence[Tensor | None],
) -> tuple[Tensor, RecurrentState]:
    """Run one layer as a loop over time, for any cell."""
    outputs: list[Tensor] = []
    finals: list[RecurrentState] = []
    for index, cell in enumerate(cells):
        projected = cell.project(data)
        steps = projected.unbind(1) if packing is None else projected.split(packing.sizes)
        run_direction = run_backward if index else run_forward
        step_outputs, final = run_direction(
            cell.recurrence(state_masks[index]), steps, tuple(s[index] for s in state)
        )
        outputs.append(torch.stack(step_outputs, 1) if packing is None else torch.cat(step_outputs))
        finals.append(final)
    final = tuple(torch.stack(parts) for parts in zip(*finals, strict=True))
    return torch.cat(outputs, -1) if len(outputs) > 1 else outputs[0], final


def run_forward(
    step: Recurrence, steps: Sequence[Tensor], state: RecurrentState
) -> tuple[list[Tensor], RecurrentState]:
    """Run from the first step to the last; rows that have ended leave at the bottom."""
    outputs: list[Tensor] = []
    ended: list[RecurrentState] = []
    for projected in steps:
        rows = projected.shape[0]
        if rows < state[0].shape[0]:
            ended.append(tuple(part[rows:] for part in state))
            state = tuple(part[:rows] for part in state)
        state = step(projected, state)
        outputs.append(state[0])
    if not ended:
        return outputs, state
    return outputs, tuple(torch.cat(parts) for parts in zip(state, *reversed(ended), strict=True))


def run_backward(
    step: Recurrence, steps: Sequence[Tensor], state: RecurrentState
) -> tuple[list[Tensor], RecurrentState]:
    """Run from the last step to the first; shorter rows join at the bottom, in their own state."""
    outputs: list[Tensor] = []
    current = tuple(part[: steps[-1].shape[0]] for part in state)
    for projected in reversed(steps):
        n_current, rows = current[0].shape[0], projected.shape[0]
        if rows > n_current:
            current = tuple(
                torch.cat([n, s[n_current:rows]]) for n, s in zip(current, state, strict=True)
            )
        current = step(projected, current)
        outputs.append(current[0])
    return outputs[::-1], current


def apply_mask(data: Tensor, mask: Tensor | None, packing: Packing | None = None) -> Tensor:
    """Multiply all steps of a row by its mask."""
    if mask is None:
        return data
    if packing is not None:
        return data * packing.repeat_over_steps(mask)
    return data * (mask if data.ndim == 2 else mask[:, None])


def select_mask_rows(mask: Tensor, packing: Packing | None) -> Tensor:
    return mask if packing is None else mask[packing.rows]
