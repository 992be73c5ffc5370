"""Luong, Pham, Manning 2015, "Effective approaches to attention-based neural machine translation"
(1508.04025).

    h_s      the top layer of a deep LSTM over the source, reversed if `reverse`
    h_t      the top layer of another, which starts from the state of each layer of the first
    a_t      = softmax(score(h_t, h_s))     query: the current state     eq. 7; score: eq. 8
    c_t      = sum_s a_t(s) h_s
    h~_t     = tanh(W_c [c_t; h_t])                                      eq. 5
    p(y_t | …) = softmax(W_s h~_t)                                       eq. 6

    score    dot, general, additive (the paper's concat), location
    window   None: global.  "local_m": only |s - t| <= D.  "local_p": only |s - p_t| <= D, with
             p_t = S sigmoid(v . tanh(W h_t)), and a_t(s) times exp(-(s - p_t)^2 / (D^2 / 2))
    feed     input feeding: the first layer reads [E y_{t-1}; h~_{t-1}]; h~_0 is 0

Slots are always in the order of the source, also with `reverse`. So local_m and alignments use the
positions of the source. A window past the end of the source reads zeros.
b: batch   s: source   t: target   n: rows of a search   v: target_size   h: hidden_dim
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.build import build_attention
from regard.attention.masks import local
from regard.attention.memory import Memory
from regard.attention.scores import Additive, General, Score
from regard.attention.step_reader import step_reader
from regard.attention.validation import check_dropout
from regard.errors import InputError
from regard.kernels.linear import Linear, linear
from regard.kernels.log_probabilities import log_probabilities
from regard.kernels.shared import step_product
from regard.layers.cells import LSTM, RecurrentState
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.recurrent import Recurrent, reversed_indices

CONCAT_INIT_GAIN = 6.0  # times the default initial weights, because states of an LSTM are small
LuongLayers = tuple[RecurrentState, ...]  # (h, c) of each layer, [n h] each


class LuongMemory(NamedTuple):
    """The states of the source, and the last state of each layer: h and c, [layers b h]."""

    memory: Memory
    last: RecurrentState


class LuongState(NamedTuple):
    """The state of a search: h and c of each layer, h~, the step, and the memory of its source."""

    layers: LuongLayers
    attentional: Float[Tensor, "n h"]
    step: int
    state_masks: tuple[Tensor, ...] | None
    memory: Memory
    origin: Int[Tensor, " n"]


class Luong(nn.Module):
    """The model of the equations above.

    Widths: `dim` of word vectors, `hidden_dim` of each of the `layers`; in the paper 1000, 1000, 4.
    `radius` is D. `dropout` acts on word vectors, between layers and on h~_t before W_s, with a new
    mask at each step (Zaremba et al. 2014; 0.2 in the paper). `state_dropout` acts on h_{t-1} in
    products, with one mask for a sequence. `max_positions` limits the source of the location score.
    """

    cross_attentions = ("attention",)

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        dim: int = 256,
        hidden_dim: int | None = None,
        layers: int = 2,
        score: str = "general",
        normalize: str = "softmax",
        window: Literal["local_m", "local_p"] | None = None,
        radius: int = 10,
        input_feeding: bool = True,
        reverse: bool = True,
        max_positions: int = 256,
        init: Literal["paper", "scaled"] = "paper",
        dropout: float = 0.0,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        if window not in (None, "local_m", "local_p"):
            raise InputError(f"window must be None, 'local_m' or 'local_p', not {window!r}")
        if init not in ("paper", "scaled"):
            raise InputError(f"init must be 'paper' or 'scaled', not {init!r}")
        hidden_dim = hidden_dim or dim
        self.dim, self.dropout = dim, dropout
        self.input_feeding, self.reverse = input_feeding, reverse
        self.mask = local(radius) if window == "local_m" else None
        self.source_words = Embedding(source_size, dim)
        self.target_words = Embedding(target_size, dim)
        self.encoder, self.decoder = (
            Recurrent(
                LSTM,
                input_dim,
                hidden_dim,
                layers,
                dropout=dropout if layers > 1 else 0.0,
                state_dropout=state_dropout,
            )
            for input_dim in (dim, dim + hidden_dim if input_feeding else dim)
        )
        self.attention = build_attention(
            score,
            hidden_dim,
            hidden_dim,
            normalize=normalize,
            slots=max_positions,
            window="local_p" if window == "local_p" else None,
            radius=radius,
        )
        self.combine = Linear(2 * hidden_dim, hidden_dim, bias=False)
        self.output = Linear(hidden_dim, target_size)  # differs: eq. 6 has no bias
        if init == "paper":  # sec. 4.1
            for weight in self.parameters():
                nn.init.uniform_(weight, -0.1, 0.1)
        else:
            initialize_score(self.attention.score)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> LuongMemory:
        if not self.reverse:
            states, last = self.encoder(self.drop(self.source_words(source)), valid)
            return LuongMemory(self.attention.remember(states, valid), last)
        # differs: the source includes the end token, which is read first
        order = reversed_indices(valid)
        words = self.drop(self.source_words(source.gather(1, order)))
        states, last = self.encoder(words, valid)
        states = states.gather(1, order[..., None].expand_as(states))
        return LuongMemory(self.attention.remember(states, valid), last)

    def teacher_forced(
        self, memory: LuongMemory, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t h"]:
        """Return h~ of each position; without input feeding, all positions run at once."""
        words = self.drop(self.target_words(target))
        if not self.input_feeding:
            states, _ = self.decoder(words, None, memory.last)
            return self.drop(self.attentional_states(states, memory.memory, 0))
        state = self.start(memory)
        layers, attentional = state.layers, state.attentional
        advance, outputs = self.advance(state.memory, state.state_masks), list[Tensor]()
        for step, word in enumerate(self.project_words(words).unbind(1)):
            layers, attentional = advance(word, layers, attentional, step)
            outputs.append(attentional)
        return self.drop(torch.stack(outputs, 1))

    def logits(self, states: Float[Tensor, "*b h"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: LuongMemory) -> LuongState:
        top = memory.last[0][-1]
        masks = self.decoder.draw_masks(len(top))
        state_masks = None if masks is None else tuple(m for m in masks.states if m is not None)
        layers = tuple(zip(*(part.unbind(0) for part in memory.last), strict=True))
        origin = torch.arange(len(top), device=top.device)
        return LuongState(layers, torch.zeros_like(top), 0, state_masks, memory.memory, origin)

    def step(
        self, state: LuongState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], LuongState]:
        word = self.project_words(self.drop(self.target_words(tokens)))
        advance = self.advance(state.memory, state.state_masks)
        layers, attentional = advance(word, state.layers, state.attentional, state.step)
        after = state._replace(layers=layers, attentional=attentional, step=state.step + 1)
        return log_probabilities(self.logits(self.drop(attentional))), after

    def select(self, state: LuongState, rows: Int[Tensor, " m"]) -> LuongState:
        def select_rows(part: Tensor) -> Tensor:
            return part.index_select(0, rows)

        origin = select_rows(state.origin)
        moved = not torch.equal(origin, state.origin)  # else each row still has the same source
        return LuongState(
            tuple(tuple(select_rows(part) for part in layer) for layer in state.layers),
            select_rows(state.attentional),
            state.step,
            None
            if state.state_masks is None
            else tuple(select_rows(mask) for mask in state.state_masks),
            state.memory.select(rows) if moved else state.memory,
            origin,
        )

    def project_words(self, words: Float[Tensor, "*b e"]) -> Float[Tensor, "*b g"]:
        """Return the words' part of the input product of the first layer, for any steps."""
        first = self.decoder.stack[0]
        return linear(words, first.weight_ih[:, : self.dim], first.bias_ih + first.bias_hh)

    def advance(
        self, memory: Memory, state_masks: tuple[Tensor, ...] | None
    ) -> Callable[[Tensor, LuongLayers, Tensor, int], tuple[LuongLayers, Tensor]]:
        """Return a function (word projection, states, h~, t) -> states, h~ one step later."""
        first, *upper = self.decoder.stack
        add_fed = step_product(first.weight_ih[:, self.dim :]) if self.input_feeding else None
        read = step_reader(self.attention, memory) if self.mask is None else None
        masks = state_masks or [None] * self.decoder.layers
        steps = [cell.recurrence(m) for cell, m in zip([first, *upper], masks, strict=True)]

        def step(
            word: Tensor, layers: LuongLayers, attentional: Tensor, t: int
        ) -> tuple[LuongLayers, Tensor]:
            after = [steps[0](word if add_fed is None else add_fed(word, attentional), layers[0])]
            for cell, run_cell, before in zip(upper, steps[1:], layers[1:], strict=True):
                after.append(run_cell(cell.project(self.drop(after[-1][0])), before))
            h = after[-1][0]
            if read is None:
                return tuple(after), self.attentional_states(h[:, None], memory, t)[:, 0]
            return tuple(after), self.combine(torch.cat([read(h), h], -1)).tanh()

        return step

    def attentional_states(self, states: Float[Tensor, "n q h"], memory: Memory, t: int) -> Tensor:
        """h~ = tanh(W_c [c; h]) for the states from step t on."""
        context = self.attention(states, memory, self.mask, start=t)
        return self.combine(torch.cat([context, states], -1)).tanh()

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


@torch.no_grad()
def initialize_score(score: Score) -> None:
    """Initialize a score so that weights depend on the query from the first step, as with dot.

    General starts as dot. The weights of concat start so large that its tanh is not linear. In the
    linear range, the query adds the same energy to every slot, and softmax removes it.
    """
    match score:
        case General():
            for weight in score.of_key.parameters():
                nn.init.eye_(weight)
        case Additive():
            for part in (score.of_query, score.of_key):
                for weight in part.parameters():
                    weight.mul_(CONCAT_INIT_GAIN)
