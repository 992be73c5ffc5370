"""Two encoder-decoders without attention: one vector or one state represents the source.

`EncoderDecoder`: Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder"
(1406.1078), appendix A.

    c     = tanh(V h_S)               h_S: the last state of a GRU over E x
    h_0   = tanh(V' c)
    r, z  = sigma(W E y_{t-1} + U h_{t-1} + C c)
    h~    = tanh(W E y_{t-1} + r (U h_{t-1} + C c))              c inside the reset gate
    h_t   = z h_{t-1} + (1 - z) h~
    p(y_t | …) = softmax(G maxout(O_h h_t + O_y E y_{t-1} + O_c c))

`Seq2Seq`: Sutskever, Vinyals, Le 2014, "Sequence to sequence learning" (1409.3215), sec. 3. A deep
LSTM reads the source from the last word to the first. A second one starts from the final state of
each layer and writes the target. p(y_t | …) = softmax(W h_t).

b: batch   s: source   t: target   n: rows of a search   v: target_size   h: hidden_dim   d: output
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.kernels.log_probabilities import log_probabilities
from regard.kernels.shared import step_product
from regard.layers.cells import GRU, LSTM
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.maxout import DeepOutput
from regard.layers.precision import interpolate
from regard.layers.recurrent import DropoutMasks, Recurrent, reversed_indices


class EncoderDecoderMemory(NamedTuple):
    """The vector c of the source."""

    c: Float[Tensor, "b h"]


class EncoderDecoderState(NamedTuple):
    """The state of a search: h of each row, the vector of its source, and a mask on h."""

    h: Float[Tensor, "n h"]
    c: Float[Tensor, "n h"]
    state_mask: Float[Tensor, "n h"] | None


class EncoderDecoder(nn.Module):
    """The model of Cho et al. 2014.

    Widths: `dim` of word vectors, `hidden_dim` of both GRUs, `output_dim` of the maxout layer; in
    the paper 100, 1000, 500. `dropout` acts on word vectors and maxout units. `state_dropout` acts
    on h_{t-1} in products, with one mask for a sequence.
    """

    cross_attentions = ()

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
        reset_before = partial(GRU, reset="before")
        self.encoder = Recurrent(reset_before, dim, hidden_dim, state_dropout=state_dropout)
        self.of_last = Linear(hidden_dim, hidden_dim)
        self.of_summary = Linear(hidden_dim, hidden_dim)
        self.cell = GRU(dim, hidden_dim, reset="after")
        self.into_cell = Linear(hidden_dim, 3 * hidden_dim, bias=False)
        # differs: O_y and G have full rank; the paper factors G to reduce the cost
        self.deep = DeepOutput([hidden_dim, dim, hidden_dim], output_dim or hidden_dim)
        self.output = Linear(output_dim or hidden_dim, target_size)
        if init == "paper":  # sec. 4.1.1: N(0, 0.01^2); recurrent weights are already orthogonal
            for name, weight in self.named_parameters():
                if weight.ndim > 1 and not name.endswith("weight_hh"):
                    nn.init.normal_(weight, std=0.01)

    def remember(
        self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]
    ) -> EncoderDecoderMemory:
        _, (h,) = self.encoder(self.drop(self.source_words(source)), valid)
        return EncoderDecoderMemory(self.of_last(h[0]).tanh())

    def teacher_forced(
        self, memory: EncoderDecoderMemory, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        words = self.drop(self.target_words(target))
        h, c, state_mask = self.start(memory)
        advance, states = self.advance(c, state_mask), list[Tensor]()
        for projected in self.cell.project(words).unbind(1):
            h = advance(projected, h)
            states.append(h)
        return self.drop(self.deep(torch.stack(states, 1), words, c[:, None]))

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: EncoderDecoderMemory) -> EncoderDecoderState:
        h, state_mask = self.of_summary(memory.c).tanh(), None
        if self.training and self.state_dropout:
            state_mask = dropout(torch.ones_like(h), self.state_dropout)
        return EncoderDecoderState(h, memory.c, state_mask)

    def step(
        self, state: EncoderDecoderState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], EncoderDecoderState]:
        # differs: y_0 is the vector of the start token; in the paper it is zero
        words = self.drop(self.target_words(tokens))
        h = self.advance(state.c, state.state_mask)(self.cell.project(words), state.h)
        t = self.drop(self.deep(h, words, state.c))
        return log_probabilities(self.logits(t)), state._replace(h=h)

    def select(self, state: EncoderDecoderState, rows: Int[Tensor, " m"]) -> EncoderDecoderState:
        h, c = state.h.index_select(0, rows), state.c.index_select(0, rows)
        return EncoderDecoderState(h, c, select_rows(state.state_mask, rows))

    def advance(self, c: Tensor, state_mask: Tensor | None) -> Callable[[Tensor, Tensor], Tensor]:
        """Return (W E y_{t-1}, h_{t-1}) -> h_t, a GRU with reset="after" and b' = C c."""
        add_product, sizes = (
            step_product(self.cell.weight_hh),
            [2 * self.hidden_dim, self.hidden_dim],
        )
        constant = self.into_cell(c) + self.cell.bias_hh

        def step(projected: Tensor, h: Tensor) -> Tensor:
            input_gates, input_new = projected.split(sizes, -1)
            masked_h = h if state_mask is None else h * state_mask
            gates, new = add_product(constant, masked_h).split(sizes, -1)
            r, z = (input_gates + gates).sigmoid().chunk(2, -1)
            return interpolate(torch.addcmul(input_new, r, new).tanh(), h, z)

        return step

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class Seq2SeqState(NamedTuple):
    """The state of each layer, and the dropout masks of a sequence."""

    h: Float[Tensor, "l n h"]
    c: Float[Tensor, "l n h"]
    masks: DropoutMasks | None = None


class Seq2Seq(nn.Module):
    """The model of Sutskever et al. 2014.

    Widths: `dim` of word vectors, `hidden_dim` of each of the `layers`; in the paper 1000, 1000, 4.
    `dropout` acts on word vectors, between layers and on h_t. `state_dropout` acts on h_{t-1} in
    products, with one mask for a sequence.
    """

    cross_attentions = ()

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
        layer_dropout = dropout if layers > 1 else 0.0
        self.source_words = Embedding(source_size, dim)
        self.target_words = Embedding(target_size, dim)
        self.encoder, self.decoder = (
            Recurrent(
                LSTM, dim, hidden_dim, layers, dropout=layer_dropout, state_dropout=state_dropout
            )
            for _ in range(2)
        )
        self.output = Linear(hidden_dim, target_size)
        if init == "paper":  # sec. 3.4
            for weight in self.parameters():
                nn.init.uniform_(weight, -0.08, 0.08)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> Seq2SeqState:
        if self.reverse:  # differs: the source includes the end token, which is read first
            source = source.gather(1, reversed_indices(valid))
        _, (h, c) = self.encoder(self.drop(self.source_words(source)), valid)
        return Seq2SeqState(h, c)

    def teacher_forced(
        self, memory: Seq2SeqState, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        words = self.drop(self.target_words(target))
        return self.drop(self.decoder(words, None, (memory.h, memory.c))[0])

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: Seq2SeqState) -> Seq2SeqState:
        return memory._replace(masks=self.decoder.draw_masks(memory.h.shape[1]))

    def step(
        self, state: Seq2SeqState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], Seq2SeqState]:
        words = self.drop(self.target_words(tokens))
        top, (h, c) = self.decoder.step(words, (state.h, state.c), state.masks)
        return log_probabilities(self.logits(self.drop(top))), Seq2SeqState(h, c, state.masks)

    def select(self, state: Seq2SeqState, rows: Int[Tensor, " m"]) -> Seq2SeqState:
        masks = None if state.masks is None else state.masks.select(rows)
        return Seq2SeqState(state.h.index_select(1, rows), state.c.index_select(1, rows), masks)

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def select_rows(mask: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if mask is None else mask.index_select(0, rows)


def check_init(init: str) -> None:
    if init not in ("paper", "scaled"):
        raise InputError(f"init must be 'paper' or 'scaled', not {init!r}")
