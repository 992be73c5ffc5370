"""Two encoder-decoders without attention: all that is known of the source is one vector, or one
state.

`EncoderDecoder`: Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder"
(1406.1078), appendix A.

    c     = tanh(V h_S)               h_S: the last state of a GRU over E x
    h_0   = tanh(V' c)
    r, z  = sigma(W E y_{t-1} + U h_{t-1} + C c)
    h~    = tanh(W E y_{t-1} + r (U h_{t-1} + C c))              c inside the reset gate
    h_t   = z h_{t-1} + (1 - z) h~
    p(y_t | …) = softmax(G maxout(O_h h_t + O_y E y_{t-1} + O_c c))

`Seq2Seq`: Sutskever, Vinyals, Le 2014, "Sequence to sequence learning" (1409.3215), sec. 3. One
deep LSTM reads the source from its last word to its first, another starts from the state of each
layer and writes; nothing else passes between them. p(y_t | …) = softmax(W h_t).

b: batch   s: source   t: target   n: rows of a search   v: target_size   h: hidden_dim   d: output
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attend.check import check_dropout
from regard.encode.cell import GRU, LSTM
from regard.encode.dropout import dropout
from regard.encode.embed import Embedding
from regard.encode.output import DeepOutput
from regard.encode.recurrent import Masks, Recurrent, turned


class Summary(NamedTuple):
    """c: the whole source."""

    c: Float[Tensor, "b h"]


class Saying(NamedTuple):
    """Where a search stands: each row's state, the source's summary, and a mask on the state."""

    h: Float[Tensor, "n h"]
    c: Float[Tensor, "n h"]
    kept: Float[Tensor, "n h"] | None


class EncoderDecoder(nn.Module):
    """`dim`: word vectors; `hidden_dim`: both GRUs; `output_dim`: maxout units.

    In the paper 100, 1000, 500. `dropout` acts on word vectors and maxout units; `state_dropout` on
    h_{t-1} in products, one mask for a sequence.
    """

    cross = ()

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        dim: int = 256,
        hidden_dim: int | None = None,
        output_dim: int | None = None,
        init: Literal["paper", "scaled"] = "paper",
        dropout: float = 0.0,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        check_init(init)
        hidden_dim = hidden_dim or dim
        self.hidden_dim, self.dropout, self.state_dropout = hidden_dim, dropout, state_dropout
        self.source_words = Embedding(source_size, dim)
        self.target_words = Embedding(target_size, dim)
        before = partial(GRU, reset="before")
        self.encoder = Recurrent(before, dim, hidden_dim, state_dropout=state_dropout)
        self.of_last = nn.Linear(hidden_dim, hidden_dim)
        self.of_summary = nn.Linear(hidden_dim, hidden_dim)
        self.cell = GRU(dim, hidden_dim, reset="after")
        self.into_cell = nn.Linear(hidden_dim, 3 * hidden_dim, bias=False)
        # differs: O_y and G are of full rank; the paper factors G to make it affordable
        self.deep = DeepOutput([hidden_dim, dim, hidden_dim], output_dim or hidden_dim)
        self.output = nn.Linear(output_dim or hidden_dim, target_size)
        if init == "paper":  # sec. 4.1.1: N(0, 0.01^2), recurrent weights orthogonal (as cells are)
            for name, weight in self.named_parameters():
                if weight.ndim > 1 and not name.endswith("weight_hh"):
                    nn.init.normal_(weight, std=0.01)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> Summary:
        _, (h,) = self.encoder(self.drop(self.source_words(source)), valid)
        return Summary(self.of_last(h[0]).tanh())

    def forced(self, memory: Summary, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        words = self.drop(self.target_words(target))
        h, c, kept = self.start(memory)
        advance, states = self.advance(c, kept), list[Tensor]()
        for projected in self.cell.project(words).unbind(1):
            h = advance(projected, h)
            states.append(h)
        return self.drop(self.deep(torch.stack(states, 1), words, c[:, None]))

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: Summary) -> Saying:
        h, kept = self.of_summary(memory.c).tanh(), None
        if self.training and self.state_dropout:
            kept = dropout(torch.ones_like(h), self.state_dropout)
        return Saying(h, memory.c, kept)

    def step(self, state: Saying, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], Saying]:
        # differs: y_0 is the start token's vector; the paper's is zero
        words = self.drop(self.target_words(tokens))
        h = self.advance(state.c, state.kept)(self.cell.project(words), state.h)
        t = self.drop(self.deep(h, words, state.c))
        return self.logits(t).log_softmax(-1), state._replace(h=h)

    def select(self, state: Saying, rows: Int[Tensor, " m"]) -> Saying:
        h, c = state.h.index_select(0, rows), state.c.index_select(0, rows)
        return Saying(h, c, at(state.kept, rows))

    def advance(self, c: Tensor, kept: Tensor | None) -> Callable[[Tensor, Tensor], Tensor]:
        """(W E y_{t-1}, h_{t-1}) -> h_t: a GRU with reset="after", whose b' is each row's C c."""
        U, sizes = self.cell.weight_hh.t(), [2 * self.hidden_dim, self.hidden_dim]
        constant = self.into_cell(c) + self.cell.bias_hh

        def step(projected: Tensor, h: Tensor) -> Tensor:
            of_gates, of_new = projected.split(sizes, -1)
            asked = h if kept is None else h * kept
            gates, new = torch.addmm(constant, asked, U).split(sizes, -1)
            r, z = (of_gates + gates).sigmoid().chunk(2, -1)
            return torch.lerp(torch.addcmul(of_new, r, new).tanh(), h, z)

        return step

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class Copied(NamedTuple):
    """The state of each layer, [layers b h], and a draw of dropout masks for a sequence."""

    h: Float[Tensor, "l n h"]
    c: Float[Tensor, "l n h"]
    masks: Masks | None = None


class Seq2Seq(nn.Module):
    """`dim`: word vectors; `hidden_dim`: each of the `layers`. In the paper 1000, 1000, 4.

    `dropout` acts on word vectors, between layers and on h_t; `state_dropout` on h_{t-1} in
    products, one mask for a sequence.
    """

    cross = ()

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        dim: int = 256,
        hidden_dim: int | None = None,
        layers: int = 2,
        reverse: bool = True,
        init: Literal["paper", "scaled"] = "paper",
        dropout: float = 0.0,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        check_init(init)
        hidden_dim = hidden_dim or dim
        self.reverse, self.dropout = reverse, dropout
        between = dropout if layers > 1 else 0.0
        self.source_words = Embedding(source_size, dim)
        self.target_words = Embedding(target_size, dim)
        self.encoder, self.decoder = (
            Recurrent(LSTM, dim, hidden_dim, layers, dropout=between, state_dropout=state_dropout)
            for _ in range(2)
        )
        self.output = nn.Linear(hidden_dim, target_size)
        if init == "paper":  # sec. 3.4
            for weight in self.parameters():
                nn.init.uniform_(weight, -0.08, 0.08)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> Copied:
        if self.reverse:  # differs: the end token, which is a part of our sources, is read first
            source = source.gather(1, turned(valid))
        _, (h, c) = self.encoder(self.drop(self.source_words(source)), valid)
        return Copied(h, c)

    def forced(self, memory: Copied, target: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        words = self.drop(self.target_words(target))
        return self.drop(self.decoder(words, None, (memory.h, memory.c))[0])

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: Copied) -> Copied:
        return memory._replace(masks=self.decoder.draw(memory.h.shape[1]))

    def step(self, state: Copied, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], Copied]:
        words = self.drop(self.target_words(tokens))
        top, (h, c) = self.decoder.step(words, (state.h, state.c), state.masks)
        return self.logits(self.drop(top)).log_softmax(-1), Copied(h, c, state.masks)

    def select(self, state: Copied, rows: Int[Tensor, " m"]) -> Copied:
        masks = None if state.masks is None else state.masks.select(rows)
        return Copied(state.h.index_select(1, rows), state.c.index_select(1, rows), masks)

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def at(mask: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if mask is None else mask.index_select(0, rows)


def check_init(init: str) -> None:
    if init not in ("paper", "scaled"):
        raise ValueError(f"init must be 'paper' or 'scaled', not {init!r}")
