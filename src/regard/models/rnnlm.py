"""The recurrent language model: Elman 1990, "Finding structure in time"; Mikolov et al. 2010,
"Recurrent neural network based language model".

    x_t = E y_t
    h_t = cell(x_t, h_{t-1}), in stacked layers      Elman: sigma(W x_t + U h_{t-1} + b); LSTM; GRU
    p(y_{t+1} | y_1 … y_t) = softmax(V h_t + b)      tied: softmax(E P h_t + b), P if widths differ

Dropout acts as in Zaremba et al. 2014 on connections that are not recurrent: word vectors, between
layers, and h_t before V. Tied weights: Press & Wolf 2017; Inan et al. 2017.

# differs: gradients go back one step in Elman 1990 and about five in Mikolov et al. 2010; here over
# all steps of one `read`. Mikolov et al. merge rare words, and their units are sigmoid.
b: batch   t: positions   n: rows of a search   v: size   d: input of the output layer
"""

from functools import partial
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.kernels.log_probabilities import log_probabilities
from regard.layers.cells import GRU, LSTM, Elman
from regard.layers.cells import RecurrentState as Cells
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.recurrent import DropoutMasks, Recurrent, select_state

CELLS = {
    "lstm": LSTM,
    "gru": GRU,
    "elman": Elman,
    "sigmoid": partial(Elman, activation=torch.sigmoid),
}


class RnnlmState(NamedTuple):
    """h (and c) of each layer, and the masks of variational dropout."""

    cells: Cells  # [layers n h] each
    masks: DropoutMasks | None


class Rnnlm(nn.Module):
    """The model of the equations above.

    Widths: `dim` of word vectors, `hidden_dim` of each of the `layers` (default: `dim`). `cell`
    "sigmoid" is Elman's with the sigmoid of Mikolov et al. 2010. `dropout` is Zaremba's, with a new
    mask at each step. `input_dropout` (on the input of a layer) and `state_dropout` (on h_{t-1} in
    products) have one mask for each row of a window (Gal & Ghahramani 2016). `begin` and `detach`
    draw these masks.
    """

    cross_attentions = ()  # a language model has no source

    def __init__(
        self,
        size: int,
        *,
        cell: Literal["lstm", "gru", "elman", "sigmoid"] = "lstm",
        dim: int = 256,
        hidden_dim: int | None = None,
        layers: int = 1,
        tie_embeddings: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        if cell not in CELLS:
            raise InputError(f"cell must be one of {', '.join(CELLS)}, not {cell!r}")
        hidden_dim = hidden_dim or dim
        self.dropout = dropout
        self.words = Embedding(size, dim, bias=tie_embeddings)
        self.layers = Recurrent(
            CELLS[cell],
            dim,
            hidden_dim,
            layers,
            dropout=dropout if layers > 1 else 0.0,
            input_dropout=input_dropout,
            state_dropout=state_dropout,
        )
        needs_projection = tie_embeddings and hidden_dim != dim
        self.project = Linear(hidden_dim, dim, bias=False) if needs_projection else None
        self.out = None if tie_embeddings else Linear(hidden_dim, size)

    def begin(self, rows: int) -> RnnlmState:
        """Return the state before the first token."""
        return RnnlmState(self.layers.initial_state(rows), self.layers.draw_masks(rows))

    def read(
        self, state: RnnlmState, ids: Int[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t d"], RnnlmState]:
        """Return the input of the output layer after each token, and the state after the last."""
        words = self.drop(self.words(ids))
        masks = state.masks if self.training else None
        states, cells = self.layers(words, None, state.cells, masks)
        return self.output_states(states), state._replace(cells=cells)

    def step(
        self, state: RnnlmState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], RnnlmState]:
        words = self.drop(self.words(tokens))
        masks = state.masks if self.training else None
        top, cells = self.layers.step(words, state.cells, masks)
        return log_probabilities(self.logits(self.output_states(top))), state._replace(cells=cells)

    def select(self, state: RnnlmState, rows: Int[Tensor, " m"]) -> RnnlmState:
        masks = None if state.masks is None else state.masks.select(rows)
        return RnnlmState(select_state(state.cells, rows), masks)

    def start(self, memory: RnnlmState) -> RnnlmState:
        """Return the state itself: a search continues from the state after the prompt."""
        return memory

    def detach(self, state: RnnlmState) -> RnnlmState:
        """Return the state without its gradient, for truncated BPTT, with new dropout masks."""
        cells = tuple(part.detach() for part in state.cells)
        return RnnlmState(cells, self.layers.draw_masks(cells[0].shape[1]))

    def teacher_forced(
        self, memory: RnnlmState | None, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        return self.read(memory or self.begin(len(target)), target)[0]

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.words.logits(states) if self.out is None else self.out(states)

    @property
    def output(self) -> nn.Linear | Embedding:
        """The layer before the softmax."""
        return self.words if self.out is None else self.out

    def output_states(self, states: Tensor) -> Tensor:
        states = self.drop(states)
        return states if self.project is None else self.project(states)

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
