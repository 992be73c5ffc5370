"""Models of piano rolls: they predict the keys of the next step from all steps before it.

    roll_rnn    h_t = cell(x_t, h_{t-1}), in stacked layers
    roll_gpt    h_t = LN(causal blocks over W x_t + P_t)
    p(x_{t+1, k} = 1 | x_1 … x_t) = sigma(V h_t + b)_k        keys are independent

x_t has a 1 for each key that sounds at step t. `roll_rnn` is the recurrent baseline of
Boulanger-Lewandowski et al. 2012 ("Modeling temporal dependencies in high-dimensional sequences",
1206.6392), with the cells of Chung et al. 2014 (1412.3555). Keys are independent, as in Chung et
al. and in Bai et al. 2018 (1803.01271). `roll_gpt` has the blocks of Radford et al. 2019.

# differs: dropout of Zaremba et al. 2014 (outputs of a layer) or of Gal & Ghahramani 2016; Chung et
# al. have weight noise. `roll_gpt` has sinusoidal positions, so that a piece can have any length.
n: rows   t: steps   k: size, the keys   d: dim
"""

from typing import Literal, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.masks import causal
from regard.attention.memory import Memory
from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.activations import build_activation
from regard.layers.cells import GRU, LSTM, Cell, Elman
from regard.layers.cells import RecurrentState as Cells
from regard.layers.dropout import dropout
from regard.layers.positions import SinusoidalPositions
from regard.layers.recurrent import DropoutMasks, Recurrent, select_state
from regard.layers.transformer_block import TransformerBlock, TransformerStack

CELLS: dict[str, type[Cell]] = {"lstm": LSTM, "gru": GRU, "elman": Elman}


class RollRnnState(NamedTuple):
    """h (and c) of each layer, and the masks of variational dropout."""

    cells: Cells  # [layers n d] each
    masks: DropoutMasks | None


class RollRnn(nn.Module):
    """The recurrent model. `dropout` acts between layers and on h_t before V, with a new mask at
    each step.

    `input_dropout` (on the input of a layer) and `state_dropout` (on h_{t-1} in products) have one
    mask for each row of a batch, drawn by `begin`.
    """

    cross_attentions = ()  # this model has no source

    def __init__(
        self,
        size: int,
        *,
        cell: Literal["lstm", "gru", "elman"] = "lstm",
        dim: int = 200,
        layers: int = 1,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        if cell not in CELLS:
            raise InputError(f"cell must be one of {', '.join(CELLS)}, not {cell!r}")
        self.dropout = dropout
        self.layers = Recurrent(
            CELLS[cell],
            size,
            dim,
            layers,
            dropout=dropout if layers > 1 else 0.0,
            input_dropout=input_dropout,
            state_dropout=state_dropout,
        )
        self.out = Linear(dim, size)

    def begin(self, rows: int) -> RollRnnState:
        """Return the state before the first step."""
        return RollRnnState(self.layers.initial_state(rows), self.layers.draw_masks(rows))

    def read(
        self, state: RollRnnState, rolls: Float[Tensor, "n t k"]
    ) -> tuple[Float[Tensor, "n t d"], RollRnnState]:
        """Return the input of the output layer after each step, and the state after the last."""
        masks = state.masks if self.training else None
        states, cells = self.layers(rolls, None, state.cells, masks)
        return dropout(states, self.dropout, self.training), state._replace(cells=cells)

    def step(
        self, state: RollRnnState, keys: Float[Tensor, "n k"]
    ) -> tuple[Float[Tensor, "n k"], RollRnnState]:
        """Logits of the keys of the next step."""
        states, state = self.read(state, keys[:, None])
        return self.logits(states[:, 0]), state

    def start(self, memory: RollRnnState) -> RollRnnState:
        return memory

    def select(self, state: RollRnnState, rows: Int[Tensor, " m"]) -> RollRnnState:
        masks = None if state.masks is None else state.masks.select(rows)
        return RollRnnState(select_state(state.cells, rows), masks)

    def detach(self, state: RollRnnState) -> RollRnnState:
        """Return the state without its gradient history."""
        cells = tuple(part.detach() for part in state.cells)
        return RollRnnState(cells, self.layers.draw_masks(cells[0].shape[1]))

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k"]:
        return self.out(states)


class RollGptState(NamedTuple):
    """Keys and values of the steps read, for each layer; None before the first step."""

    rows: int
    past: tuple[Memory, ...] | None


class RollGpt(nn.Module):
    """The transformer; `hidden_dim` is the width of the feed-forward layer (default: 4 dim)."""

    cross_attentions = ()  # this model has no source

    def __init__(
        self,
        size: int,
        *,
        dim: int = 128,
        heads: int = 4,
        layers: int = 2,
        hidden_dim: int | None = None,
        activation: str = "gelu",
        dropout: float = 0.1,
    ):
        super().__init__()
        check_positive("heads", heads)
        check_positive("layers", layers)
        check_dropout(dropout)
        self.dropout = dropout
        self.into = Linear(size, dim)
        self.position = SinusoidalPositions(dim)
        self.decoder = TransformerStack(
            TransformerBlock(
                *(dim, heads, hidden_dim or 4 * dim),
                norm="pre",
                activation=build_activation(activation),
                dropout=dropout,
            )
            for _ in range(layers)
        )
        self.out = Linear(dim, size)

    def begin(self, rows: int) -> RollGptState:
        """Return the state before the first step."""
        return RollGptState(rows, None)

    def read(
        self, state: RollGptState, rolls: Float[Tensor, "n t k"]
    ) -> tuple[Float[Tensor, "n t d"], RollGptState]:
        """Return the input of the output layer after each step, and the state after the last."""
        start = 0 if state.past is None else state.past[0].slots
        inputs = dropout(self.position(self.into(rolls), start), self.dropout, self.training)
        states, past = self.decoder(inputs, mask=causal, past=state.past)
        return states, RollGptState(state.rows, tuple(past))

    def step(
        self, state: RollGptState, keys: Float[Tensor, "n k"]
    ) -> tuple[Float[Tensor, "n k"], RollGptState]:
        """Logits of the keys of the next step."""
        states, state = self.read(state, keys[:, None])
        return self.logits(states[:, 0]), state

    def start(self, memory: RollGptState) -> RollGptState:
        return memory

    def select(self, state: RollGptState, rows: Int[Tensor, " m"]) -> RollGptState:
        past = state.past
        return RollGptState(
            len(rows), None if past is None else tuple(layer.select(rows) for layer in past)
        )

    def detach(self, state: RollGptState) -> RollGptState:
        """Return the state without its gradient history."""
        past = state.past
        return RollGptState(
            state.rows, None if past is None else tuple(layer.detach() for layer in past)
        )

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k"]:
        return self.out(states)
