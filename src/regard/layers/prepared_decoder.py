"""A GRU that attends to a memory, and its deep output, in inference (RNNsearch).

The weights of a step are collected at the start of a search. Weights with the same input have one
joint product, and kernels in C++ do the rest of a step. Its equations are those of
`models.rnnsearch`; everything that is not plain keeps that path.

n: rows   b: inputs   k: slots   h: units of the GRU   a: units of the attention   d: width of t_i
"""

from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple, cast

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.normalizers import softmax
from regard.attention.scores import Additive
from regard.attention.step_reader import SearchMemory
from regard.kernels import compiled
from regard.kernels.gru import address, can_run_kernels, next_gru_state
from regard.kernels.linear import Linear
from regard.kernels.log_probabilities import log_probabilities
from regard.kernels.prepared import Affine, PreparedLinear
from regard.layers.cells import GRU
from regard.layers.embedding import Embedding
from regard.layers.maxout import DeepOutput


class DecoderParts(NamedTuple):
    """The modules of a decoder, and whether t_i reads s_i instead of s_{i-1}."""

    words: Embedding
    attention: Attention
    cell: GRU
    deep: DeepOutput
    output: nn.Linear
    reads_current: bool


class PreparedMemory(NamedTuple):
    """exp(2 k), values and validity of each slot; rows share the memory of their input."""

    exp_keys: Float[Tensor, "b k a"]
    values: Float[Tensor, "b k v"]
    valid: Bool[Tensor, "b k"] | None


class PreparedDecoder:
    """The products of a step, by their input.

    Columns of the products:

        of words    GRU (3h), deep output
        of s        attention (a), GRU (2h before the reset, 3h after it), deep output if it reads s
        of context  GRU (3h), deep output
    """

    def __init__(self, native: ModuleType, parts: DecoderParts, memory: PreparedMemory):
        cell, deep = parts.cell, parts.deep
        score = cast("Additive", parts.attention.score)
        of_query = cast("Linear", score.of_query)
        self.native, self.parts, self.memory = native, parts, memory
        is_before, hidden = cell.reset == "before", cell.hidden_dim
        gates = 2 * hidden if is_before else 3 * hidden
        width = parts.words.weight.shape[1]
        of_state, of_word, of_context = cast("list[Linear]", list(deep.parts))
        bias_hh = cell.bias_hh
        state = [Affine(of_query.weight, of_query.bias), Affine(cell.weight_hh[:gates], None)]
        if is_before:
            word_bias = cell.bias_ih + bias_hh
        else:
            word_bias, state[1] = cell.bias_ih, Affine(cell.weight_hh, bias_hh)
        self.word_product = joint_product(
            [Affine(cell.weight_ih[:, :width], word_bias), Affine(of_word.weight, of_state.bias)]
        )
        self.context_product = joint_product(
            [Affine(cell.weight_ih[:, width:], None), Affine(of_context.weight, None)]
        )
        readout = Affine(of_state.weight, None)
        self.state_product = joint_product(state if parts.reads_current else [*state, readout])
        self.readout_product = joint_product([readout])
        new = PreparedLinear([Affine(cell.weight_hh[2 * hidden :], None)])
        self.new_product = new if is_before else None
        self.output = joint_product([Affine(parts.output.weight, parts.output.bias)])
        self.units, self.hidden, self.gates = len(of_query.weight), hidden, gates
        self.readout_width = len(of_word.weight)

    def step(
        self, s: Float[Tensor, "n h"], origin: Int[Tensor, " n"], tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], Float[Tensor, "n h"]]:
        """Read a token in each row; return log-probabilities and the new state."""
        word = self.word_product(self.parts.words(tokens))
        of_state = self.state_product(s)
        context = self.context_product(self.read(of_state, origin))
        next_s = next_gru_state(
            self.native,
            address(word, 0),
            address(context, 0),
            address(of_state, self.units),
            s,
            self.new_product,
        )
        if self.parts.reads_current:
            readout, first = self.readout_product(next_s), 0
        else:
            readout, first = of_state, self.units + self.gates
        t = s.new_empty(len(s), self.readout_width // self.parts.deep.pieces)
        columns = 3 * self.hidden
        self.native.sum_maxout(
            *address(word, columns),
            *address(context, columns),
            *address(readout, first),
            t.data_ptr(),
            *t.shape,
            self.parts.deep.pieces,
        )
        return log_probabilities(self.output(t)), next_s

    def read(self, of_state: Tensor, origin: Tensor) -> Float[Tensor, "n v"]:
        """Return the context of each row."""
        exp_keys, values, valid = self.memory
        slots, width = values.shape[1:]
        context = values.new_empty(len(of_state), width)
        self.native.attend_additive(
            *address(of_state, 0),
            exp_keys.data_ptr(),
            cast("Additive", self.parts.attention.score).energy.data_ptr(),
            values.data_ptr(),
            0 if valid is None else valid.data_ptr(),
            origin.data_ptr(),
            context.data_ptr(),
            *(len(context), slots, self.units, width),
        )
        return context


def joint_product(parts: Sequence[Affine]) -> PreparedLinear:
    """Return the product with several weights; a missing bias is 0 if another part has one."""
    if all(part.bias is None for part in parts):
        return PreparedLinear(parts)
    return PreparedLinear(
        [
            part
            if part.bias is not None
            else Affine(part.weight, part.weight.new_zeros(len(part.weight)))
            for part in parts
        ]
    )


def prepare_decoder(parts: DecoderParts, memory: SearchMemory) -> PreparedDecoder | None:
    """Collect the weights of a decoder; None if it has to keep the plain path."""
    native, exp_keys = compiled.native, memory.exp_keys
    if native is None or exp_keys is None or not is_plain_decoder(parts):
        return None
    values, valid = memory.memory.values, memory.memory.valid
    if valid is not None:
        valid = valid.expand(values.shape[:2]).contiguous()
    exp_keys, values = exp_keys.contiguous(), values.contiguous()
    energy = cast("Additive", parts.attention.score).energy
    if not can_run_kernels(exp_keys, values, energy, *parts.cell.weights, parts.output.weight):
        return None
    return PreparedDecoder(native, parts, PreparedMemory(exp_keys, values, valid))


def is_plain_decoder(parts: DecoderParts) -> bool:
    """Return whether these modules compute their equations alone, and nothing observes them."""
    attention, cell = parts.attention, parts.cell
    modules = [module for part in parts[:-1] for module in cast("nn.Module", part).modules()]
    return (
        type(attention.score) is Additive
        and attention.normalize is softmax
        and attention.window is None
        and attention.hook is None
        and type(cell) is GRU
        and cell.gain is None
        and not any(module.training for module in modules)
        and not any(module._forward_hooks or module._forward_pre_hooks for module in modules)
        and all(
            type(module) is Linear and isinstance(module.weight, nn.Parameter)
            for module in (attention.score.of_query, *parts.deep.parts, parts.output)
        )
    )
