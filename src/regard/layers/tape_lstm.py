"""An LSTM that attends to all its earlier states, the tape: intra-attention.

    e_i            = v . tanh(W_h h_i + W_x x_t + W_r h~_{t-1})        i < t
    [h~_t; c~_t]   = sum_i softmax(e)_i [h_i; c_i]                      one set of weights for both
    i, f, o, g     = sigma, sigma, sigma, tanh of W x_t + U h~_t + b
    c_t            = f c~_t + i g,   h_t = o tanh(c_t)

Cheng, Dong, Lapata 2016 (1601.06733), eq. 3-8. The first step reads zeros from an empty tape.
n: rows   t: steps   k: slots of a tape   d: input_dim   h: hidden_dim   a: align_dim
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.build import build_normalizer
from regard.attention.core import Attention
from regard.attention.memory import Memory
from regard.attention.scores import Additive
from regard.kernels.linear import Linear, add_linear
from regard.layers.cells import LSTM
from regard.layers.precision import without_autocast


class Tape(NamedTuple):
    """A slot for each step so far, with key W_h h_i and value [h_i; c_i], and the last read."""

    memory: Memory
    read: Float[Tensor, "n h"]  # h~ of the last step, 0 before the first

    def select(self, rows: Int[Tensor, " m"]) -> "Tape":
        return Tape(self.memory.select(rows), self.read.index_select(0, rows))

    def detach(self, max_slots: int | None = None) -> "Tape":
        """Return the last `max_slots` slots (None: all) without their gradient."""
        keys, values = self.memory.keys.detach(), self.memory.values.detach()
        first = 0 if max_slots is None else max(0, self.memory.slots - max_slots)
        return Tape(Memory(keys[:, first:], values[:, first:]), self.read.detach())


class TapeLSTM(nn.Module):
    """The layer of the equations above; `align_dim` is the width inside the score.

    `observe` records its weights as "attention".
    """

    def __init__(self, input_dim: int, hidden_dim: int, align_dim: int, normalize: str = "softmax"):
        super().__init__()
        self.cell = LSTM(input_dim, hidden_dim)
        self.of_input = Linear(input_dim, align_dim, bias=False)
        self.of_read = Linear(hidden_dim, align_dim, bias=False)
        self.attention = Attention(
            Additive(None, hidden_dim, align_dim), build_normalizer(normalize)
        )

    def initial_tape(self, rows: int) -> Tape:
        return Tape(self.empty_memory(rows, 0), self.cell.initial_state(rows)[0])

    def empty_memory(self, rows: int, slots: int) -> Memory:
        """Return a memory of zeros; its slots are not valid."""
        zeros, hidden_dim = self.of_read.weight.new_zeros, self.cell.hidden_dim
        keys = zeros(rows, slots, self.of_read.out_features)
        valid = zeros(1, slots, dtype=torch.bool) if slots else None
        return Memory(keys, zeros(rows, slots, 2 * hidden_dim), valid)

    def forward(
        self, inputs: Float[Tensor, "n t d"], tape: Tape
    ) -> tuple[Float[Tensor, "n t h"], Tape]:
        """Return h_t of each step, and the tape with these steps.

        The products of x_t in gates and score are computed for all steps at once.
        """
        with without_autocast(self.cell.weight_hh):
            return self.run_tape(inputs.to(self.cell.weight_hh.dtype), tape)

    def run_tape(self, inputs: Tensor, tape: Tape) -> tuple[Tensor, Tape]:
        """Run all steps in the dtype of the weights."""
        (memory, read), outputs = tape, list[Tensor]()
        recurrence, read_tape = self.cell.recurrence(), self.build_tape_reader()
        gates, tape_queries = self.cell.project(inputs).unbind(1), self.of_input(inputs).unbind(1)
        for gate, tape_query in zip(gates, tape_queries, strict=True):
            read, cell = read_tape(tape_query, read, memory)
            h, c = recurrence(gate, (read, cell))
            memory = self.write(memory, h, c)
            outputs.append(h)
        return torch.stack(outputs, 1), Tape(memory, read)

    def build_tape_reader(self) -> Callable[[Tensor, Tensor, Memory], tuple[Tensor, Tensor]]:
        """Return a function (W_x x_t, h~_{t-1}, tape) -> h~_t, c~_t."""
        W, attention = self.of_read.weight, self.attention

        def read_tape(tape_query: Tensor, read: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
            readable = memory if memory.slots else self.empty_memory(len(read), 1)
            h, c = attention(add_linear(tape_query, read, W)[:, None], readable)[:, 0].chunk(2, -1)
            return h, c

        return read_tape

    def write(self, memory: Memory, h: Tensor, c: Tensor) -> Memory:
        key = self.attention.score.prepare(h[:, None])
        return memory.append(Memory(key, torch.cat([h, c], -1)[:, None]))

    def recompute_keys(self, tape: Tape) -> Tape:
        """Return the tape with new keys, because W_h may have changed, and for its gradient."""
        values = tape.memory.values
        with without_autocast(values):
            keys = self.attention.score.prepare(values[..., : self.cell.hidden_dim])
        return Tape(Memory(keys, values), tape.read)


class FusedTapeState(NamedTuple):
    """The state of a layer with attention to a source: its tape, and the last read from there."""

    tape: Tape
    read: Float[Tensor, "n h"]  # gamma~ of the last step, 0 before the first

    def select(self, rows: Int[Tensor, " m"]) -> "FusedTapeState":
        return FusedTapeState(self.tape.select(rows), self.read.index_select(0, rows))


class FusedTapeLSTM(TapeLSTM):
    """Deep fusion: the source's tapes [gamma_j; alpha_j] are read inside the cell  (sec. 4).

        [gamma~_t; alpha~_t] = sum_j p_j [gamma_j; alpha_j],  p from gamma_j, x_t, gamma~_{t-1}
        r   = sigma(W_r [gamma~_t; x_t] + b)
        c_t = r alpha~_t + f c~_t + i g

    The source has the width of the layer. `observe` records the attention to it as "cross".
    """

    def __init__(self, input_dim: int, hidden_dim: int, align_dim: int, normalize: str = "softmax"):
        super().__init__(input_dim, hidden_dim, align_dim, normalize)
        self.cross_input = Linear(input_dim, align_dim, bias=False)
        self.cross_read = Linear(hidden_dim, align_dim, bias=False)
        self.cross = Attention(Additive(None, hidden_dim, align_dim), build_normalizer(normalize))
        self.gate_input = Linear(input_dim, hidden_dim)
        self.gate_read = Linear(hidden_dim, hidden_dim, bias=False)

    def forward_with_source(
        self, inputs: Float[Tensor, "n t d"], state: FusedTapeState, source: Memory
    ) -> tuple[Float[Tensor, "n t h"], FusedTapeState]:
        """Return h_t of each step and the next state, with attention to the source."""
        dtype = self.cell.weight_hh.dtype
        with without_autocast(self.cell.weight_hh):
            return self.run_tape_with_source(inputs.to(dtype), state, source.to(dtype))

    def run_tape_with_source(
        self, inputs: Tensor, state: FusedTapeState, source: Memory
    ) -> tuple[Tensor, FusedTapeState]:
        """Run all steps in the dtype of the weights."""
        ((memory, read), source_read), outputs, read_tape = (
            state,
            list[Tensor](),
            self.build_tape_reader(),
        )
        U, W, V = self.cell.weight_hh, self.cross_read.weight, self.gate_read.weight
        input_projections = (self.cell.project, self.of_input, self.cross_input, self.gate_input)
        for gate, tape_query, source_input, source_gate in zip(
            *(project(inputs).unbind(1) for project in input_projections), strict=True
        ):
            read, cell = read_tape(tape_query, read, memory)
            source_query = add_linear(source_input, source_read, W)[:, None]
            source_read, source_cell = self.cross(source_query, source)[:, 0].chunk(2, -1)
            i, f, g, o = add_linear(gate, read, U).chunk(4, -1)
            c = torch.addcmul(f.sigmoid() * cell, i.sigmoid(), g.tanh())
            c = torch.addcmul(c, add_linear(source_gate, source_read, V).sigmoid(), source_cell)
            h = o.sigmoid() * c.tanh()
            memory = self.write(memory, h, c)
            outputs.append(h)
        return torch.stack(outputs, 1), FusedTapeState(Tape(memory, read), source_read)
