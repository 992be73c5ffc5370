"""LSTMN: Cheng, Dong, Lapata 2016, "Long short-term memory-networks for machine reading"
(1601.06733): a language model, and an encoder-decoder.

    a_i^t        = v . tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1})        i < t                  eq. 3
    [h~_t; c~_t] = sum_i softmax(a^t)_i [h_i; c_i]                    one set of weights     eq. 4-5
    i, f, o, c^  = sigma, sigma, sigma, tanh of W [h~_t; x_t] + b                           eq. 6
    c_t          = f c~_t + i c^,  h_t = o tanh(c_t)                                        eq. 7-8
    p(y_{t+1})   = softmax(V h_t + b)

The layer is `encode.tape.TapeLSTM`. Of several, each reads h of the one below as its x.
# differs: the forget bias starts at 1; no skip connections from x to upper layers.
b: batch   s: source   t: positions   n: rows of a search   v: size   d: what the output sees
"""

from typing import Literal, NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attend.attention import Attention
from regard.attend.check import check_dropout, check_positive
from regard.attend.make import make_normaliser
from regard.attend.memory import Memory
from regard.attend.score import Additive
from regard.encode.dropout import dropout
from regard.encode.embed import Embedding
from regard.encode.tape import FusedTapeLSTM, Tape, TapeLSTM, Told


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


class Read(NamedTuple):
    """The source: for each layer of a deep decoder, or the top layer alone."""

    memory: tuple[Memory, ...]


class Standing(NamedTuple):
    """Where a search stands: each layer's tape, what was last read or shown, and the source."""

    layers: tuple[Told, ...]
    memory: tuple[Memory, ...]
    origin: Int[Tensor, " n"]


class LstmnFusion(nn.Module):
    """An encoder and a decoder of tapes (sec. 4), with attention of the one to the other.

    `fusion` "deep": inside each cell, with a gate of its own, to the tapes of the source's layer
    (`encode.tape.FusedTapeLSTM`). "shallow": as Bahdanau et al. 2015 do; the top h_{t-1} asks for
    the source's top h_j, and what is read enters the first layer beside the word.
    # differs: the decoder's tapes begin empty.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        dim: int = 256,
        hidden_dim: int | None = None,
        align_dim: int | None = None,
        layers: int = 1,
        fusion: Literal["deep", "shallow"] = "deep",
        normalise: str = "softmax",
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        check_positive("layers", layers)
        if fusion not in ("deep", "shallow"):
            raise ValueError(f"fusion must be 'deep' or 'shallow', not {fusion!r}")
        hidden_dim = hidden_dim or dim
        align_dim = align_dim or hidden_dim
        self.dropout, self.deep = dropout, fusion == "deep"
        self.source_words = Embedding(source_size, dim)
        self.target_words = Embedding(target_size, dim)
        made, first = (FusedTapeLSTM, dim) if self.deep else (TapeLSTM, dim + hidden_dim)
        self.encoder, self.decoder = (
            nn.ModuleList(
                kind(hidden_dim if layer else wide, hidden_dim, align_dim, normalise)
                for layer in range(layers)
            )
            for kind, wide in ((TapeLSTM, dim), (made, first))
        )
        self.attention = None
        if not self.deep:
            score = Additive(hidden_dim, hidden_dim, align_dim)
            self.attention = Attention(score, make_normaliser(normalise))
        self.cross = (
            tuple(f"decoder.{layer}.cross" for layer in range(layers))
            if self.deep
            else ("attention",)
        )
        self.output = nn.Linear(hidden_dim, target_size)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> Read:
        """A word never looks at padding, which is behind it."""
        x, memory = self.drop(self.source_words(source)), list[Memory]()
        for layer, below in zip(self.encoder, self.decoder, strict=True):
            x, tape = cast("TapeLSTM", layer)(x, cast("TapeLSTM", layer).begin(len(x)))
            if isinstance(below, FusedTapeLSTM):
                memory.append(below.cross.remember(x, valid, tape.memory.values))
            x = self.drop(x)
        if self.attention is not None:
            memory.append(self.attention.remember(x, valid))
        return Read(tuple(memory))

    def forced(self, memory: Read, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t h"]:
        return self.go_on(self.start(memory), target)[0]

    def logits(self, states: Float[Tensor, "*b h"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: Read) -> Standing:
        rows = len(memory.memory[0].keys)
        origin = torch.arange(rows, device=self.output.weight.device)
        layers = (cast("TapeLSTM", layer) for layer in self.decoder)
        told = tuple(Told(layer.begin(rows), layer.cell.initial(rows)[0]) for layer in layers)
        return Standing(told, memory.memory, origin)

    def step(
        self, state: Standing, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], Standing]:
        states, state = self.go_on(state, tokens[:, None])
        return self.logits(states[:, 0]).log_softmax(-1), state

    def select(self, state: Standing, rows: Int[Tensor, " m"]) -> Standing:
        memory, origin = state.memory, state.origin.index_select(0, rows)
        if not torch.equal(origin, state.origin):  # else rows moved within their sentences only
            memory = tuple(layer.select(rows) for layer in memory)
        return Standing(tuple(told.select(rows) for told in state.layers), memory, origin)

    def go_on(
        self, state: Standing, target: Int[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t h"], Standing]:
        x, layers = self.drop(self.target_words(target)), list[Told]()
        if self.attention is not None:
            return self.beside(self.attention, state, x)
        for layer, told, source in zip(self.decoder, state.layers, state.memory, strict=True):
            x, told = cast("FusedTapeLSTM", layer).fuse(x, told, source)
            x = self.drop(x)
            layers.append(told)
        return x, state._replace(layers=tuple(layers))

    def beside(
        self, attention: Attention, state: Standing, words: Tensor
    ) -> tuple[Tensor, Standing]:
        """Shallow: each step waits for the top of the one before."""
        tapes, h, outputs = [told.tape for told in state.layers], state.layers[-1].read, []
        for word in words.split(1, 1):
            x = torch.cat([word, attention(h[:, None], state.memory[0])], -1)
            for index, layer in enumerate(self.decoder):
                x, tapes[index] = layer(x, tapes[index])
                h, x = x[:, 0], self.drop(x)
            outputs.append(x)
        layers = tuple(Told(tape, h) for tape in tapes)
        return torch.cat(outputs, 1), state._replace(layers=layers)

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
