"""The recurrent language model: Elman 1990, "Finding structure in time"; Mikolov et al. 2010,
"Recurrent neural network based language model".

    x_t = E y_t
    h_t = cell(x_t, h_{t-1}), layer upon layer       Elman: sigma(W x_t + U h_{t-1} + b); LSTM; GRU
    p(y_{t+1} | y_1 … y_t) = softmax(V h_t + b)      tied: softmax(E P h_t + b), P if widths differ

Dropout as in Zaremba et al. 2014, on what is not recurrent: word vectors, between layers, and h_t
where it meets V. Tied weights: Press & Wolf 2017; Inan et al. 2017.

# differs: Elman 1990 learns from one step back only, Mikolov et al. 2010 from about five; here from
# as many as `read` is given. Mikolov et al. merge rare words, and their units are sigmoid.
b: batch   t: positions   n: rows of a search   v: size   d: what the output sees
"""

from functools import partial
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout
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
    """What each row has read: h (and c) of each layer, and its masks of variational dropout."""

    cells: Cells  # [layers n h] each
    masks: DropoutMasks | None


class Rnnlm(nn.Module):
    """`dim`: word vectors; `hidden_dim`: each of the `layers`, by default as wide.

    `cell` "sigmoid" is Elman's with the sigmoid of Mikolov et al. 2010. `dropout` is Zaremba's,
    anew at each step; `input_dropout` (on what enters a layer) and `state_dropout` (on h_{t-1} in
    products) are drawn by `begin`, and again by `detach`: one mask for each row of a window
    (Gal & Ghahramani 2016).
    """

    cross_attentions = ()  # there is no source to look at

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
            raise ValueError(f"cell must be one of {', '.join(CELLS)}, not {cell!r}")
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
        self.project = nn.Linear(hidden_dim, dim, bias=False) if needs_projection else None
        self.out = None if tie_embeddings else nn.Linear(hidden_dim, size)

    def begin(self, rows: int) -> RnnlmState:
        """Nothing read yet."""
        return RnnlmState(self.layers.initial_state(rows), self.layers.draw_masks(rows))

    def read(
        self, state: RnnlmState, ids: Int[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t d"], RnnlmState]:
        """What the output layer sees after each token, and the state after the last."""
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
        return self.logits(self.output_states(top)).log_softmax(-1), state._replace(cells=cells)

    def select(self, state: RnnlmState, rows: Int[Tensor, " m"]) -> RnnlmState:
        masks = None if state.masks is None else state.masks.select(rows)
        return RnnlmState(select_state(state.cells, rows), masks)

    def start(self, memory: RnnlmState) -> RnnlmState:
        """A search goes on from a state that has read the prompt."""
        return memory

    def detach(self, state: RnnlmState) -> RnnlmState:
        """The same state, through which no gradient goes back: truncated BPTT."""
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
