"""RNNsearch: Bahdanau, Cho, Bengio 2015, "Neural machine translation by jointly learning to align
and translate" (1409.0473), appendix A.

    h_j   = [forward GRU; backward GRU] over E x                 annotations            A.2.1
    s_0   = tanh(W_s backward h_1)                               final state of the backward GRU
    e_ij  = v . tanh(W_a s_{i-1} + U_a h_j)                      query: the last state  A.1.2
    c_i   = sum_j softmax(e_i)_j h_j
    s_i   = GRU(s_{i-1}, [E y_{i-1}; c_i])                       reset before the product
    t_i   = maxout(U_o s_{i-1} + V_o E y_{i-1} + C_o c_i + b)    A.2.2
    p(y_i | …) = softmax(W_o t_i + b)

The paper's update gate u is stored as the gate that keeps, z = 1 - u (see `layers.cells`).
b: batch   s: source   t: target   n: rows of a search   v: target_size   h: hidden_dim   d: output
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, TypeGuard, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.build import build_attention
from regard.attention.memory import Memory
from regard.attention.scores import Additive
from regard.attention.step_reader import SearchMemory, prepare_search, step_reader
from regard.attention.validation import check_dropout
from regard.errors import InputError
from regard.kernels.linear import Linear, linear
from regard.kernels.log_probabilities import log_probabilities
from regard.kernels.shared import step_product
from regard.layers.cells import GRU
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.maxout import DeepOutput
from regard.layers.prepared_decoder import DecoderParts, PreparedDecoder, prepare_decoder
from regard.layers.recurrent import Recurrent


class RnnSearchMemory(NamedTuple):
    """The annotations, and the initial state of the decoder."""

    memory: Memory
    first: Float[Tensor, "b h"]


CellStep = Callable[[Tensor, Tensor, Tensor], Tensor]  # (word projection, c_i, s_{i-1}) -> s_i


class RnnSearchState(NamedTuple):
    """The state of a search: s of each row, its dropout mask, memory and index of the source.

    `run_cell` is the same at all steps.
    """

    s: Float[Tensor, "n h"]
    state_mask: Float[Tensor, "n h"] | None
    memory: SearchMemory
    origin: Int[Tensor, " n"]
    run_cell: CellStep


class PreparedState(NamedTuple):
    """The state of a search by prepared weights: rows of an input share its memory."""

    s: Float[Tensor, "n h"]
    origin: Int[Tensor, " n"]
    decoder: PreparedDecoder
    first: RnnSearchState  # the state at the start of the plain path


class RnnSearch(nn.Module):
    """The model of the equations above.

    Widths: `dim` of word vectors, `hidden_dim` of each GRU, `align_dim` inside the score,
    `output_dim` of t_i; in the paper 620, 1000, 1000, 500. `dropout` acts on word vectors,
    annotations and t_i. `state_dropout` acts on s_{i-1} and h_{j-1} in products, with one mask for
    a sequence. `readout` is the state in t_i: "previous", s_{i-1} as in the paper, or "current",
    s_i. `max_positions` limits the source of the location score.
    """

    cross_attentions = ("attention",)

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        dim: int = 256,
        hidden_dim: int | None = None,
        align_dim: int | None = None,
        output_dim: int | None = None,
        score: str = "additive",
        normalize: str = "softmax",
        max_positions: int = 256,
        reset: Literal["before", "after"] = "before",
        readout: Literal["previous", "current"] = "previous",
        init: Literal["paper", "scaled"] = "paper",
        dropout: float = 0.0,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        if readout not in ("previous", "current"):
            raise InputError(f"readout must be 'previous' or 'current', not {readout!r}")
        if init not in ("paper", "scaled"):
            raise InputError(f"init must be 'paper' or 'scaled', not {init!r}")
        hidden_dim = hidden_dim or dim
        align_dim, output_dim = align_dim or hidden_dim, output_dim or hidden_dim
        self.dim, self.current = dim, readout == "current"
        self.dropout, self.state_dropout = dropout, state_dropout
        gru = partial(GRU, reset=reset)
        self.source_words = Embedding(source_size, dim)
        self.target_words = Embedding(target_size, dim)
        self.encoder = Recurrent(
            gru, dim, hidden_dim, bidirectional=True, state_dropout=state_dropout
        )
        self.of_backward = Linear(hidden_dim, hidden_dim)
        self.attention = build_attention(
            score,
            hidden_dim,
            2 * hidden_dim,
            normalize=normalize,
            hidden_dim=align_dim,
            slots=max_positions,
        )
        self.cell = gru(dim + 2 * hidden_dim, hidden_dim)
        self.deep = DeepOutput([hidden_dim, dim, 2 * hidden_dim], output_dim)
        self.output = Linear(output_dim, target_size)
        if init == "paper":
            self.initialize_as_in_paper()

    def initialize_as_in_paper(self) -> None:
        """Initialize as in B.1: W_a and U_a from N(0, 0.001^2), v and every bias 0, all others from
        N(0, 0.01^2). Recurrent weights are already orthogonal."""
        for name, weight in self.named_parameters():
            if weight.ndim < 2:
                nn.init.zeros_(weight)
            elif not name.endswith("weight_hh"):
                nn.init.normal_(weight, std=0.01)
        score = self.attention.score
        if isinstance(score, Additive):
            for weight in (*score.of_query.parameters(), *score.of_key.parameters()):
                nn.init.normal_(weight, std=0.001)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> RnnSearchMemory:
        states, (h,) = self.encoder(self.drop(self.source_words(source)), valid)
        first = self.of_backward(h[1]).tanh()
        return RnnSearchMemory(self.attention.remember(self.drop(states), valid), first)

    def teacher_forced(
        self, memory: RnnSearchMemory, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        """Return t_i for each position; only attention and GRU run step by step."""
        words, s = self.drop(self.target_words(target)), memory.first
        read, run_cell = step_reader(self.attention, memory.memory), self.cell_step(self.draw(s))
        states, contexts = [s], list[Tensor]()
        for word in self.project_words(words).unbind(1):
            context = read(s)
            s = run_cell(word, context, s)
            states.append(s)
            contexts.append(context)
        readout_states = states[1:] if self.current else states[:-1]
        return self.drop(self.deep(torch.stack(readout_states, 1), words, torch.stack(contexts, 1)))

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: RnnSearchMemory) -> RnnSearchState | PreparedState:
        origin = torch.arange(len(memory.first), device=memory.first.device)
        search_memory, mask = prepare_search(self.attention, memory.memory), self.draw(memory.first)
        state = RnnSearchState(memory.first, mask, search_memory, origin, self.cell_step(mask))
        cell, deep = cast("GRU", self.cell), self.deep
        parts = DecoderParts(
            self.target_words, self.attention, cell, deep, self.output, self.current
        )
        decoder = prepare_decoder(parts, search_memory)
        if decoder is None:
            return state
        return PreparedState(memory.first.contiguous(), origin, decoder, state)

    def step(
        self, state: RnnSearchState | PreparedState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], RnnSearchState | PreparedState]:
        if self.can_run(state):
            log_probs, s = state.decoder.step(state.s, state.origin, tokens)
            return log_probs, state._replace(s=s)
        if isinstance(state, PreparedState):
            state = self.select_rows(state.first, state.origin)._replace(s=state.s)
        words = self.drop(self.target_words(tokens))
        context = state.memory.read(self.attention, state.s)
        s = state.run_cell(self.project_words(words), context, state.s)
        t = self.drop(self.deep(s if self.current else state.s, words, context))
        return log_probabilities(self.logits(t)), state._replace(s=s)

    def choose(
        self,
        state: RnnSearchState | PreparedState,
        tokens: Int[Tensor, " n"],
        forbidden: Int[Tensor, " f"],
    ) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"], PreparedState] | None:
        """Return the best next tokens, their log-probabilities and the new state, by kernels."""
        if type(self).step is not RnnSearch.step or not self.can_run(state):
            return None
        best, log_probs, s = state.decoder.choose(state.s, state.origin, tokens, forbidden)
        return best, log_probs, state._replace(s=s)

    def can_run(self, state: RnnSearchState | PreparedState) -> TypeGuard[PreparedState]:
        """Return whether a step is one call of a kernel, which nothing observes."""
        return (
            isinstance(state, PreparedState)
            and self.attention.hook is None
            and not torch.is_grad_enabled()
        )

    def select(
        self, state: RnnSearchState | PreparedState, rows: Int[Tensor, " m"]
    ) -> RnnSearchState | PreparedState:
        if isinstance(state, RnnSearchState):
            return self.select_rows(state, rows)
        s, origin = state.s.index_select(0, rows), state.origin.index_select(0, rows)
        return state._replace(s=s, origin=origin)

    def select_rows(self, state: RnnSearchState, rows: Int[Tensor, " m"]) -> RnnSearchState:
        s, origin = state.s.index_select(0, rows), state.origin.index_select(0, rows)
        state_mask, run_cell = state.state_mask, state.run_cell
        if state_mask is not None:
            state_mask = state_mask.index_select(0, rows)
            run_cell = self.cell_step(state_mask)
        is_in_place = torch.equal(origin, state.origin)  # each row still has the same source
        memory = state.memory if is_in_place else state.memory.select(rows)
        return RnnSearchState(s, state_mask, memory, origin, run_cell)

    def project_words(self, words: Float[Tensor, "*b e"]) -> Float[Tensor, "*b g"]:
        """Return W E y + b, the words' part of the input product of the GRU, for any steps."""
        cell, bias = self.cell, self.cell.bias_ih
        bias = bias if cell.reset == "after" else bias + cell.bias_hh
        return linear(words, cell.weight_ih[:, : self.dim], bias)

    def cell_step(self, state_mask: Tensor | None) -> CellStep:
        """Return a function (word projection, c_i, s_{i-1}) -> s_i, for all steps."""
        recurrence = self.cell.recurrence(state_mask)
        add_context = step_product(self.cell.weight_ih[:, self.dim :])
        return lambda word, context, s: recurrence(add_context(word, context), (s,))[0]

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)

    def draw(self, s: Tensor) -> Tensor | None:
        """Draw one dropout mask on s for all steps (Gal & Ghahramani 2016)."""
        if not (self.training and self.state_dropout):
            return None
        return dropout(torch.ones_like(s), self.state_dropout)
