"""RNMT+: Chen et al. 2018, "The best of both worlds: combining recent advances in neural machine
translation" (1804.09849), sec. 3 and figure 2.

    encoder   bidirectional LSTM layers; from the third on x + LSTM(x); then W [->; <-]
    decoder   c_t   = multi-head additive attention, query h1_{t-1} (output of the first layer)
              h1_t  = LSTM([E y_{t-1}; c_t])
              hl_t  = LSTM([x_t; c_t]),  from the third layer on x_t + LSTM([x_t; c_t])
    p(y_t | …) = softmax(W [h_t; c_t] + b)

query_state="current" is the default of the authors' code: the query is h1_t. The upper layers and
the softmax read this context at step t, the first layer at step t + 1.

With `layer_norm`, each gate of each LSTM is normalized separately (see `layers.cells`). The upper
layers of the decoder do not affect attention, so teacher forcing runs them over all steps at once.
b: batch   s: source   t: target   n: rows of a search   v: target_size   h: hidden_dim   d: 2 h
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.build import build_attention
from regard.attention.memory import Memory
from regard.attention.multihead import MultiHead
from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear, linear
from regard.kernels.log_probabilities import log_probabilities
from regard.kernels.shared import step_product
from regard.layers.cells import LSTM, RecurrentState
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.recurrent import Recurrent

LAYERS_WITHOUT_RESIDUAL = 2  # at the bottom of each stack


class RnmtMemory(NamedTuple):
    """Keys and values of the source in each head."""

    memory: Memory


class RnmtState(NamedTuple):
    """The state of a search: h and c of each layer, [n h], context, memory, index of the source."""

    layers: tuple[RecurrentState, ...]
    context: Float[Tensor, "n h"]
    memory: Memory
    origin: Int[Tensor, " n"]


class Rnmt(nn.Module):
    """The model of the equations above.

    Widths: `dim` of word vectors, `hidden_dim` of each LSTM; in the paper both 1024, with 6 + 8
    layers and 4 heads. `dropout` acts on word vectors and on the output of every LSTM to the layer
    above, `attention_dropout` on weights. `max_positions` limits the source of the location score.
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
        decoder_layers: int | None = None,
        heads: int = 4,
        layer_norm: bool = True,
        query_state: Literal["previous", "current"] = "previous",
        score: str = "additive",
        normalize: str = "softmax",
        max_positions: int = 256,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        check_positive("layers", layers)
        check_positive("heads", heads)
        if query_state not in ("previous", "current"):
            raise InputError(f"query_state must be 'previous' or 'current', not {query_state!r}")
        hidden_dim, upper_count = hidden_dim or dim, (decoder_layers or layers) - 1
        lstm = partial(LSTM, layer_norm=layer_norm)
        self.dim, self.current, self.dropout = dim, query_state == "current", dropout
        self.source_words = Embedding(source_size, dim)
        self.target_words = Embedding(target_size, dim)
        self.encoder = nn.ModuleList(
            Recurrent(lstm, input_dim, hidden_dim, bidirectional=True)
            for input_dim in [dim] + [2 * hidden_dim] * (layers - 1)
        )
        self.project = Linear(2 * hidden_dim, hidden_dim)
        attention = build_attention(
            *(score, hidden_dim // heads, hidden_dim // heads),
            normalize=normalize,
            slots=max_positions,
            heads=heads,
            dropout=attention_dropout,
        )
        # differs: in the authors' code, values are the states; here they are projected
        self.attention = MultiHead(attention, hidden_dim, heads)
        # differs: h = o tanh(c), as usual; the authors' code has h = o c
        self.first = lstm(dim + hidden_dim, hidden_dim)
        self.upper = nn.ModuleList(
            Recurrent(lstm, 2 * hidden_dim, hidden_dim) for _ in range(upper_count)
        )
        self.output = Linear(2 * hidden_dim, target_size)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> RnmtMemory:
        x = self.drop(self.source_words(source))
        for index, layer in enumerate(self.encoder):
            y = self.drop(layer(x, valid)[0])
            x = x + y if index >= LAYERS_WITHOUT_RESIDUAL else y
        return RnmtMemory(self.attention.remember(self.project(x), valid))

    def teacher_forced(
        self, memory: RnmtMemory, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        """Return [h_t; c_t] for each position."""
        (state, *_), context, *_ = self.start(memory)
        advance, outputs, contexts = self.advance(memory.memory), list[Tensor](), list[Tensor]()
        for word in self.project_words(self.drop(self.target_words(target))).unbind(1):
            context, state = advance(word, state, context)
            outputs.append(state[0])
            contexts.append(context)
        c = torch.stack(contexts, 1)
        return self.run_upper_layers(
            torch.stack(outputs, 1), c, lambda index, x: self.upper_layers[index](x)[0]
        )

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: RnmtMemory) -> RnmtState:
        """Return states of zeros; the decoder reads the source by attention only."""
        batch = len(memory.memory.keys)
        origin = torch.arange(batch, device=memory.memory.keys.device)
        layers = tuple(self.first.initial_state(batch) for _ in range(1 + len(self.upper)))
        return RnmtState(layers, layers[0][0], memory.memory, origin)

    def step(
        self, state: RnmtState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], RnmtState]:
        word = self.project_words(self.drop(self.target_words(tokens)))
        context, first = self.advance(state.memory)(word, state.layers[0], state.context)
        layers = [first]

        def run_layer(index: int, x: Tensor) -> Tensor:
            layers.append(self.upper_layers[index].stack[0].advance(x, state.layers[index + 1]))
            return layers[-1][0]

        top = self.run_upper_layers(first[0], context, run_layer)
        after = state._replace(layers=tuple(layers), context=context)
        return log_probabilities(self.logits(top)), after

    def select(self, state: RnmtState, rows: Int[Tensor, " m"]) -> RnmtState:
        layers = tuple(tuple(p.index_select(0, rows) for p in layer) for layer in state.layers)
        context, origin = (x.index_select(0, rows) for x in (state.context, state.origin))
        if torch.equal(origin, state.origin):  # each row still has the same source
            return RnmtState(layers, context, state.memory, origin)
        return RnmtState(layers, context, state.memory.select(rows), origin)

    def run_upper_layers(
        self, x: Tensor, context: Tensor, run_layer: Callable[[int, Tensor], Tensor]
    ) -> Tensor:
        """Run the upper layers at one or all steps; `run_layer` runs one of them."""
        x = self.drop(x)
        for index in range(len(self.upper)):
            y = self.drop(run_layer(index, torch.cat([x, context], -1)))
            x = x + y if index + 1 >= LAYERS_WITHOUT_RESIDUAL else y
        return torch.cat([x, context], -1)

    def project_words(self, words: Float[Tensor, "*b e"]) -> Float[Tensor, "*b g"]:
        """Return the words' part of the input product of the first layer, for any steps."""
        cell, bias = self.first, self.first.bias_hh
        bias = bias if cell.gain is not None else bias + cell.bias_ih
        return linear(words, cell.weight_ih[:, : self.dim], bias)

    def advance(
        self, memory: Memory
    ) -> Callable[[Tensor, RecurrentState, Tensor], tuple[Tensor, RecurrentState]]:
        """Return a function (word projection, state of the first layer, last c) -> c_t, state."""
        recurrence = self.first.recurrence()
        add_context = step_product(self.first.weight_ih[:, self.dim :])

        def step(
            word: Tensor, state: RecurrentState, context: Tensor
        ) -> tuple[Tensor, RecurrentState]:
            if not self.current:
                context = self.attention(state[0][:, None], memory)[:, 0]
            state = recurrence(add_context(word, context), state)
            if self.current:
                context = self.attention(state[0][:, None], memory)[:, 0]
            return context, state

        return step

    @property
    def upper_layers(self) -> list[Recurrent]:
        """All layers of the decoder except the first."""
        return [cast(Recurrent, layer) for layer in self.upper]

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
