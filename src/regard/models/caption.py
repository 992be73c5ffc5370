"""Captions: Vinyals et al. 2015, "Show and Tell" (1411.4555), and Xu et al. 2015, "Show, Attend
and Tell" (1502.03044).

    show_tell      x_{-1} = CNN(I), x_t = E y_t          the picture is read once, before the words
                   h_t = LSTM(x_t, h_{t-1}),  p(y_{t+1}) = softmax(W h_t + b)

    show_attend    c_0, h_0 = tanh(W mean_i a_i + b)     a_i: the CNN's vector of a place i
                   alpha_t  = softmax_i f(a_i, h_{t-1})          f: additive; hard: one place, drawn
                   z_t      = beta_t sum_i alpha_ti a_i          beta_t = sigmoid(w h_{t-1} + b)
                   h_t, c_t = LSTM([E y_{t-1}; z_t], h_{t-1}, c_{t-1})
                   p(y_t)   = softmax(L_o (E y_{t-1} + L_h h_t + L_z z_t))

    doubly stochastic:   loss + lambda sum_i (1 - sum_t alpha_ti)^2

b: pictures   k: places   t: words   n: rows of a search   v: target_size   h: hidden_dim
"""

from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attend.check import check_dropout
from regard.attend.make import make_attention
from regard.attend.memory import Memory
from regard.attend.reinforce import Reinforce
from regard.encode.cell import LSTM
from regard.encode.dropout import dropout
from regard.encode.embed import Embedding
from regard.encode.picture import Picture, Size, check_pictures, sides
from regard.encode.recurrent import Recurrent


class Shown(NamedTuple):
    """The state after the picture, of which words go on; rows are the second axis."""

    h: Float[Tensor, "1 n h"]
    c: Float[Tensor, "1 n h"]


class ShowTell(nn.Module):
    """`dim`: word vectors; `hidden_dim`: the LSTM; `picture_dim`: channels of the CNN.

    In the paper 512 and 512, and a GoogLeNet. `dropout` acts on word vectors, the picture's vector
    and h_t.
    """

    cross = ()

    def __init__(
        self,
        target_size: int,
        size: Size,
        channels: int = 3,
        *,
        dim: int = 128,
        hidden_dim: int | None = None,
        picture_dim: int = 64,
        picture_layers: int = 3,
        pools: int = 2,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        hidden_dim = hidden_dim or dim
        self.size, self.dropout = sides(size), dropout
        # differs: the paper's CNN was taught by ImageNet; ours is small, and learns with the rest
        self.picture = looker(channels, picture_dim, picture_layers, pools)
        rows, columns = grid_of(self.picture, self.size)
        # differs: all places side by side; a mean would forget where things are
        self.of_picture = nn.Linear(rows * columns * picture_dim, dim)
        self.target_words = Embedding(target_size, dim)
        self.decoder = Recurrent(LSTM, dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, target_size)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        return self.picture.grid(height, width)

    def remember(
        self,
        source: Float[Tensor, "b c height width"],
        valid: None = None,  # noqa: ARG002 - of a picture all is real
    ) -> Shown:
        check_size(source, self.size, self.picture)
        seen = self.drop(self.of_picture(self.picture(source).flatten(1)))
        _, (h, c) = self.decoder(seen[:, None])
        return Shown(h, c)

    def forced(self, memory: Shown, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t h"]:
        return self.drop(self.decoder(self.drop(self.target_words(target)), None, memory)[0])

    def logits(self, states: Float[Tensor, "*b h"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: Shown) -> Shown:
        return memory

    def step(self, state: Shown, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], Shown]:
        words = self.drop(self.target_words(tokens))
        top, (h, c) = self.decoder.step(words, state)
        return self.logits(self.drop(top)).log_softmax(-1), Shown(h, c)

    def select(self, state: Shown, rows: Int[Tensor, " m"]) -> Shown:
        return Shown(state.h.index_select(1, rows), state.c.index_select(1, rows))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class Viewed(NamedTuple):
    """The places of a picture, and the states in which the decoder begins."""

    memory: Memory
    h: Float[Tensor, "b h"]
    c: Float[Tensor, "b h"]


class State(NamedTuple):
    """Where a search stands: each row's states, what it looks at, and whose picture that is."""

    h: Float[Tensor, "n h"]
    c: Float[Tensor, "n h"]
    memory: Memory
    origin: Int[Tensor, " n"]


class Told(NamedTuple):
    """What the softmax sees at each word, and where each looked, with its gradient."""

    states: Float[Tensor, "b t d"]
    weights: Float[Tensor, "b t k"]


class ShowAttend(nn.Module):
    """`dim`: word vectors; `hidden_dim`: the LSTM; `align_dim`: the score's; `picture_dim`: a_i.

    `normalise` says how it looks: "softmax" is the paper's soft attention, "reinforce" its hard
    one, for which `reward` and `entropy` are lambda_r and lambda_e, and `expected` how often a
    sequence reads the expectation. `dropout` acts on word vectors, places and what softmax sees.
    """

    cross = ("attention",)

    def __init__(
        self,
        target_size: int,
        size: Size,
        channels: int = 3,
        *,
        dim: int = 128,
        hidden_dim: int | None = None,
        align_dim: int | None = None,
        picture_dim: int = 64,
        picture_layers: int = 3,
        pools: int = 2,
        score: str = "additive",
        normalise: str = "softmax",
        reward: float = 1.0,
        entropy: float = 0.01,
        expected: float = 0.5,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        hidden_dim = hidden_dim or dim
        self.size, self.dropout, self.expected = sides(size), dropout, expected
        self.picture = looker(channels, picture_dim, picture_layers, pools)
        rows, columns = grid_of(self.picture, self.size)
        # differs: a place has a learnt vector of its row and one of its column; a VGG of 16 layers
        # knows where it is by the borders that it sees, ours does not reach them
        self.rows, self.columns = Embedding(rows, picture_dim), Embedding(columns, picture_dim)
        self.of_mean = nn.Linear(picture_dim, 2 * hidden_dim)
        self.target_words = Embedding(target_size, dim)
        self.attention = make_attention(
            score,
            hidden_dim,
            picture_dim,
            normalise=normalise,
            hidden_dim=align_dim or hidden_dim,
            slots=rows * columns,
        )
        self.gate = nn.Linear(hidden_dim, 1)
        self.cell = LSTM(dim + picture_dim, hidden_dim)
        self.of_state = nn.Linear(hidden_dim, dim)
        self.of_context = nn.Linear(picture_dim, dim, bias=False)
        self.output = nn.Linear(dim, target_size)
        # inside the model, because its baseline is a part of what a training goes on with
        self.reinforce = Reinforce(reward, entropy) if normalise == "reinforce" else None

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of places."""
        return self.picture.grid(height, width)

    def remember(
        self,
        source: Float[Tensor, "b c height width"],
        valid: None = None,  # noqa: ARG002 - of a picture all is real
    ) -> Viewed:
        check_size(source, self.size, self.picture)
        at = self.rows.weight[:, None] + self.columns.weight
        places = self.picture(source) + at.flatten(0, 1)
        h, c = self.of_mean(places.mean(1)).tanh().chunk(2, -1)
        return Viewed(self.attention.remember(self.drop(places)), h, c)

    def told(self, memory: Viewed, target: Int[Tensor, "b t"]) -> Told:
        words, h, c = self.drop(self.target_words(target)), memory.h, memory.c
        seen: list[tuple[Tensor, Tensor, Tensor]] = []
        for word in words.unbind(1):
            h, c, z, weights = self.advance(word, h, c, memory.memory)
            seen.append((h, z, weights))
        states, contexts, weights = (torch.stack(one, 1) for one in zip(*seen, strict=True))
        return Told(self.deep(words, states, contexts), weights)

    def forced(self, memory: Viewed, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        return self.told(memory, target).states

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: Viewed) -> State:
        origin = torch.arange(len(memory.h), device=memory.h.device)
        return State(memory.h, memory.c, memory.memory, origin)

    def step(self, state: State, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], State]:
        words = self.drop(self.target_words(tokens))
        h, c, z, _ = self.advance(words, state.h, state.c, state.memory)
        told = self.logits(self.deep(words, h, z)).log_softmax(-1)
        return told, state._replace(h=h, c=c)

    def select(self, state: State, rows: Int[Tensor, " m"]) -> State:
        h, c, origin = (one.index_select(0, rows) for one in (state.h, state.c, state.origin))
        if torch.equal(origin, state.origin):  # rows moved within their pictures only
            return State(h, c, state.memory, origin)
        return State(h, c, state.memory.select(rows), origin)

    def advance(
        self, word: Tensor, h: Tensor, c: Tensor, memory: Memory
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """E y_{t-1}, h_{t-1}, c_{t-1} -> h_t, c_t, z_t, alpha_t; h_{t-1} looks, not h_t."""
        weights = self.attention.weigh(h[:, None], memory)
        z = self.gate(h).sigmoid() * self.attention.read(weights, memory)[:, 0]
        h, c = self.cell(torch.cat([word, z], -1), (h, c))
        return h, c, z, weights[:, 0]

    def deep(self, words: Tensor, states: Tensor, contexts: Tensor) -> Tensor:
        return self.drop(words + self.of_state(states) + self.of_context(contexts))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def doubly_stochastic(
    weights: Float[Tensor, "b t k"], valid: Bool[Tensor, "b t"]
) -> Float[Tensor, " b"]:
    """sum_i (1 - sum_t alpha_ti)^2 over real words: each place should be looked at once."""
    return (1 - (weights * valid[..., None]).sum(1)).square().sum(-1)


def looker(channels: int, dim: int, layers: int, pools: int) -> Picture:
    """Of one picture at a time: batches hold captions of one length, which tells what they show."""
    norm = partial(nn.GroupNorm, 1)
    return Picture(channels, dim, layers=layers, hidden_dim=dim, pools=pools, norm=norm)


def grid_of(picture: Picture, size: tuple[int, int]) -> tuple[int, int]:
    rows, columns = picture.grid(*size)
    if not rows or not columns:
        least = 2**picture.pools
        told = f"size = {list(size)} is too small for pools = {picture.pools}"
        raise ValueError(f"{told}: each side must be at least {least} pixels")
    return rows, columns


def check_size(pictures: Tensor, size: tuple[int, int], picture: Picture) -> None:
    check_pictures(pictures, picture.channels, picture.out.weight)
    if tuple(pictures.shape[2:]) != size:
        have = " x ".join(map(str, pictures.shape[2:]))
        raise ValueError(f"pictures are {have} pixels, but the model is for {size[0]} x {size[1]}")
