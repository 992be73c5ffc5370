"""LSTMN: Cheng, Dong, Lapata 2016, "Long short-term memory-networks for machine reading"
(1601.06733), as a language model.

    a_i^t        = v . tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1})        i < t                  eq. 3
    [h~_t; c~_t] = sum_i softmax(a^t)_i [h_i; c_i]                    one set of weights     eq. 4-5
    i, f, o, c^  = sigma, sigma, sigma, tanh of W [h~_t; x_t] + b                           eq. 6
    c_t          = f c~_t + i c^,  h_t = o tanh(c_t)                                        eq. 7-8
    p(y_{t+1})   = softmax(V h_t + b)

The layer is `encode.tape.TapeLSTM`. Of several, each reads h of the one below as its x.
# differs: the forget bias starts at 1; no skip connections from x to upper layers.
b: batch   t: positions   n: rows of a search   v: size   d: what the output sees
"""

from typing import NamedTuple, cast

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attend.check import check_dropout, check_positive
from regard.encode.dropout import dropout
from regard.encode.embed import Embedding
from regard.encode.tape import Tape, TapeLSTM


class State(NamedTuple):
    """What each row has read: a tape for each layer."""

    tapes: tuple[Tape, ...]


class Lstmn(nn.Module):
    """`dim`: word vectors; `hidden_dim`: each of the `layers`; `align_dim`: inside the score.

    `tied`: the output is the table of words, behind a projection if `hidden_dim` is not `dim`.
    `dropout` acts on word vectors, between layers and on h_t where it meets V (Zaremba et al.
    2014). A tape grows with all that is read; `detach` leaves its last `longest` slots (None: all).
    """

    cross = ()  # there is no source to look at

    def __init__(
        self,
        size: int,
        *,
        dim: int = 256,
        hidden_dim: int | None = None,
        align_dim: int | None = None,
        layers: int = 1,
        normalise: str = "softmax",
        tied: bool = False,
        longest: int | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        check_positive("layers", layers)
        if longest is not None:
            check_positive("longest", longest)
        hidden_dim = hidden_dim or dim
        self.dropout, self.longest = dropout, longest
        self.words = Embedding(size, dim, bias=tied)
        self.layers = nn.ModuleList(
            TapeLSTM(hidden_dim if layer else dim, hidden_dim, align_dim or hidden_dim, normalise)
            for layer in range(layers)
        )
        narrow = tied and hidden_dim != dim
        self.project = nn.Linear(hidden_dim, dim, bias=False) if narrow else None
        self.out = None if tied else nn.Linear(hidden_dim, size)

    def begin(self, rows: int) -> State:
        """Nothing read yet."""
        return State(tuple(layer.begin(rows) for layer in self.stack))

    def read(self, state: State, ids: Int[Tensor, "n t"]) -> tuple[Float[Tensor, "n t d"], State]:
        """What the output layer sees after each token, and the state after the last."""
        pairs = zip(self.stack, state.tapes, strict=True)
        return self.go_on(State(tuple(layer.renewed(tape) for layer, tape in pairs)), ids)

    def step(self, state: State, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], State]:
        states, state = self.go_on(state, tokens[:, None])
        return self.logits(states[:, 0]).log_softmax(-1), state

    def go_on(self, state: State, ids: Int[Tensor, "n t"]) -> tuple[Float[Tensor, "n t d"], State]:
        x, tapes = self.drop(self.words(ids)), list[Tape]()
        for layer, tape in zip(self.stack, state.tapes, strict=True):
            x, tape = layer(x, tape)
            x = self.drop(x)
            tapes.append(tape)
        return x if self.project is None else self.project(x), State(tuple(tapes))

    def select(self, state: State, rows: Int[Tensor, " m"]) -> State:
        return State(tuple(tape.select(rows) for tape in state.tapes))

    def start(self, memory: State) -> State:
        """A search goes on from a state that has read the prompt."""
        return memory

    def detach(self, state: State) -> State:
        """The same state, through which no gradient goes back, with tapes cut to `longest`."""
        return State(tuple(tape.detach(self.longest) for tape in state.tapes))

    def forced(self, memory: State | None, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        return self.read(memory or self.begin(len(target)), target)[0]

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.words.logits(states) if self.out is None else self.out(states)

    @property
    def output(self) -> nn.Linear | Embedding:
        """The layer before the softmax."""
        return self.words if self.out is None else self.out

    @property
    def stack(self) -> list[TapeLSTM]:
        return cast("list[TapeLSTM]", list(self.layers))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
