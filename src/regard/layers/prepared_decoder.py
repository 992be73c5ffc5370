"""A GRU that attends to a memory, and its deep output, in inference (RNNsearch).

The weights of a step are collected at the start of a search. Weights with the same input have one
joint product, and kernels in C++ do the rest of a step. Its equations are those of
`models.rnnsearch`; everything that is not plain keeps that path.

n: rows   b: inputs   k: slots   h: units of the GRU   a: units of the attention   d: width of t_i
"""

from types import ModuleType
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.normalizers import softmax
from regard.attention.scores import Additive
from regard.attention.step_reader import SearchMemory
from regard.errors import InputError
from regard.kernels import compiled
from regard.kernels.gru import can_run_kernels
from regard.kernels.linear import Linear, find_or_make
from regard.kernels.panels import NO_PRODUCT, pack_panels
from regard.kernels.prepared import Affine
from regard.layers.cells import GRU
from regard.layers.embedding import Embedding
from regard.layers.maxout import DeepOutput

MAX_TABLE_SIZE = 2**24  # numbers, of 64 MB
# With so many rows for each input, and so few slots, the product of the context is cheaper for all
# slots once than for each row of each step.
MIN_ROWS_PER_INPUT, MAX_PROJECTED_SLOTS = 2, 64


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


class DecoderWeights:
    """The products of a step by their input, and the table of their addresses.

    Columns of the products:

        of words    GRU (3h), deep output
        of s        attention (a), GRU (2h before the reset, 3h after it), deep output if it reads s
        of context  GRU (3h), deep output

    Products of words are kept in a table, unless it would be large. A step fills a row when it
    reads a word for the first time.
    """

    def __init__(self, parts: DecoderParts):
        cell, deep, words = parts.cell, parts.deep, parts.words.weight
        score = cast("Additive", parts.attention.score)
        of_query = cast("Linear", score.of_query)
        of_state, of_word, of_context = cast("list[Linear]", list(deep.parts))
        hidden, width, is_before = cell.hidden_dim, words.shape[1], cell.reset == "before"
        of_words, of_contexts = cell.weight_ih.split([width, cell.input_dim - width], 1)
        gates, fresh = cell.weight_hh.split([2 * hidden, hidden])
        readout = Affine(of_state.weight, None)
        if is_before:
            word_bias, recurrent = cell.bias_ih + cell.bias_hh, Affine(gates, None)
        else:
            word_bias, recurrent = cell.bias_ih, Affine(cell.weight_hh, cell.bias_hh)
        of_s = [Affine(of_query.weight, of_query.bias), recurrent]
        products = [
            pack_panels([Affine(of_words, word_bias), Affine(of_word.weight, of_state.bias)]),
            pack_panels(of_s if parts.reads_current else [*of_s, readout]),
            pack_panels([Affine(of_contexts, None), Affine(of_context.weight, None)]),
            pack_panels([Affine(fresh, None)]) if is_before else NO_PRODUCT,
            pack_panels([readout]) if parts.reads_current else NO_PRODUCT,
            pack_panels([Affine(parts.output.weight, parts.output.bias)]),
        ]
        table_size = len(words) * products[0].outputs
        keeps_words = table_size <= MAX_TABLE_SIZE
        # memory that nothing has written to costs nothing
        table = words.new_empty(table_size if keeps_words else 0)
        states = torch.zeros(len(words) if keeps_words else 0, dtype=torch.uint8)
        # they live as long as their addresses
        self.tensors = [words, score.energy, *products, table, states]
        self.table = torch.tensor(
            [
                *(number for product in products for number in product.numbers),
                *(words.data_ptr(), score.energy.data_ptr()),
                *(table.data_ptr(), states.data_ptr(), len(words)),
                *(hidden, len(of_query.weight), deep.pieces, is_before, parts.reads_current),
            ]
        )
        self.of_context, self.output_size = products[2], len(parts.output.weight)


class PreparedDecoder:
    """Steps of a search, each by one call of a kernel."""

    def __init__(self, native: ModuleType, parts: DecoderParts, memory: PreparedMemory):
        self.native, self.parts, self.memory = native, parts, memory
        parameters = decoder_parameters(parts)
        key = DecoderWeights, parts.reads_current
        self.weights = find_or_make(key, parameters, lambda: DecoderWeights(parts))
        self.projected: Tensor | None = None

    def step(
        self, s: Float[Tensor, "n h"], origin: Int[Tensor, " n"], tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], Float[Tensor, "n h"]]:
        """Read a token in each row; return log-probabilities and the new state."""
        log_probs = s.new_empty(len(s), self.weights.output_size)
        return log_probs, self.run(s, origin, tokens, (log_probs.data_ptr(), 0, 0, 0, 0))

    def choose(
        self,
        s: Float[Tensor, "n h"],
        origin: Int[Tensor, " n"],
        tokens: Int[Tensor, " n"],
        forbidden: Int[Tensor, " f"],
    ) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"], Float[Tensor, "n h"]]:
        """Return the best next token of each row, its log-probability, and the new state."""
        best = torch.empty(len(s), dtype=torch.long)
        log_probs = torch.empty(len(s), dtype=torch.float64)
        addresses = forbidden.data_ptr(), len(forbidden), best.data_ptr(), log_probs.data_ptr()
        return best, log_probs, self.run(s, origin, tokens, (0, *addresses))

    def run(
        self,
        s: Float[Tensor, "n h"],
        origin: Int[Tensor, " n"],
        tokens: Int[Tensor, " n"],
        result: tuple[int, int, int, int, int],
    ) -> Float[Tensor, "n h"]:
        """Read a token in each row; return the new state."""
        (exp_keys, _, valid), weights, values = self.memory, self.weights, self.find_values(len(s))
        tokens, next_s = tokens.long().contiguous(), torch.empty_like(s)
        is_done = self.native.decoder_step(
            *(weights.table.data_ptr(), exp_keys.data_ptr(), values.data_ptr()),
            values is not self.memory.values,
            *(0 if valid is None else valid.data_ptr(), values.shape[1], origin.data_ptr()),
            *(tokens.data_ptr(), s.data_ptr(), next_s.data_ptr(), *result),
            *(len(s), torch.get_num_threads()),
        )
        if not is_done:
            raise InputError(self.parts.words.id_range_message(tokens))
        return next_s

    def find_values(self, rows: int) -> Float[Tensor, "b k v"]:
        """Return the values of the memory, or their products, which a beam search shares."""
        values, product = self.memory.values, self.weights.of_context
        if (
            self.projected is None
            and rows >= MIN_ROWS_PER_INPUT * len(values)
            and values.shape[1] <= MAX_PROJECTED_SLOTS
            and product.panels.dtype is torch.float32
        ):
            projected = values.new_empty(*values.shape[:2], product.outputs)
            self.native.project_values(
                *(self.weights.table.data_ptr(), values.data_ptr(), projected.data_ptr()),
                *(values.shape[0] * values.shape[1], torch.get_num_threads()),
            )
            self.projected = projected
        return values if self.projected is None else self.projected


def decoder_parameters(parts: DecoderParts) -> list[Tensor]:
    """Return the parameters of a decoder; that of the attention's memory is not used."""
    modules = (parts.output, parts.words, parts.attention, parts.cell, parts.deep)
    return [weight for module in modules for weight in module.parameters()]


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
    weights = energy, *parts.cell.weights, parts.words.weight, parts.output.weight
    if not can_run_kernels(exp_keys, values, *weights):
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
        and parts.words.scale == 1.0
        and not any(module.training for module in modules)
        and not any(module._forward_hooks or module._forward_pre_hooks for module in modules)
        and all(
            type(module) is Linear and isinstance(module.weight, nn.Parameter)
            for module in (attention.score.of_query, *parts.deep.parts, parts.output)
        )
    )
