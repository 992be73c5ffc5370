"""LSTMN: Cheng, Dong, Lapata 2016, "Long short-term memory-networks for machine reading"
(1601.06733): a language model, and an encoder-decoder.

    a_i^t        = v . tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1})        i < t                  eq. 3
    [h~_t; c~_t] = sum_i softmax(a^t)_i [h_i; c_i]                    one set of weights     eq. 4-5
    i, f, o, c^  = sigma, sigma, sigma, tanh of W [h~_t; x_t] + b                           eq. 6
    c_t          = f c~_t + i c^,  h_t = o tanh(c_t)                                        eq. 7-8
    p(y_{t+1})   = softmax(V h_t + b)

The layer is `layers.tape_lstm.TapeLSTM`. In a stack, each layer reads h of the layer below as x.
# differs: the forget bias starts at 1; no skip connections from x to upper layers.
b: batch   s: source   t: positions   n: rows of a search   v: size   d: input of the output layer
"""

from typing import Literal, NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.build import build_normalizer
from regard.attention.core import Attention
from regard.attention.memory import Memory
from regard.attention.scores import Additive
from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.tape_lstm import FusedTapeLSTM, FusedTapeState, Tape, TapeLSTM


class LstmnState(NamedTuple):
    """A tape for each layer."""

    tapes: tuple[Tape, ...]


class Lstmn(nn.Module):
    """The language model.

    Widths: `dim` of word vectors, `hidden_dim` of each of the `layers`, `align_dim` inside the
    score. With `tie_embeddings` the output layer is the table of words, after a projection if
    `hidden_dim` is not `dim`. `dropout` acts on word vectors, between layers and on h_t before V
    (Zaremba et al. 2014). A tape grows with every token. `detach` keeps its last `max_slots` slots
    (None: all).
    """

    cross_attentions = ()  # a language model has no source

    def __init__(
        self,
        size: int,
        *,
        dim: int = 256,
        hidden_dim: int | None = None,
        align_dim: int | None = None,
        layers: int = 1,
        normalize: str = "softmax",
        tie_embeddings: bool = False,
        max_slots: int | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        check_positive("layers", layers)
        if max_slots is not None:
            check_positive("max_slots", max_slots)
        hidden_dim = hidden_dim or dim
        self.dropout, self.max_slots = dropout, max_slots
        self.words = Embedding(size, dim, bias=tie_embeddings)
        self.layers = nn.ModuleList(
            TapeLSTM(hidden_dim if layer else dim, hidden_dim, align_dim or hidden_dim, normalize)
            for layer in range(layers)
        )
        needs_projection = tie_embeddings and hidden_dim != dim
        self.project = Linear(hidden_dim, dim, bias=False) if needs_projection else None
        self.out = None if tie_embeddings else Linear(hidden_dim, size)

    def begin(self, rows: int) -> LstmnState:
        """Return the state before the first token."""
        return LstmnState(tuple(layer.initial_tape(rows) for layer in self.stack))

    def read(
        self, state: LstmnState, ids: Int[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t d"], LstmnState]:
        """Return the input of the output layer after each token, and the state after the last."""
        layers_and_tapes = zip(self.stack, state.tapes, strict=True)
        return self.run_layers(
            LstmnState(tuple(layer.recompute_keys(tape) for layer, tape in layers_and_tapes)), ids
        )

    def step(
        self, state: LstmnState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], LstmnState]:
        states, state = self.run_layers(state, tokens[:, None])
        return self.logits(states[:, 0]).log_softmax(-1), state

    def run_layers(
        self, state: LstmnState, ids: Int[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t d"], LstmnState]:
        x, tapes = self.drop(self.words(ids)), list[Tape]()
        for layer, tape in zip(self.stack, state.tapes, strict=True):
            x, tape = layer(x, tape)
            x = self.drop(x)
            tapes.append(tape)
        return x if self.project is None else self.project(x), LstmnState(tuple(tapes))

    def select(self, state: LstmnState, rows: Int[Tensor, " m"]) -> LstmnState:
        return LstmnState(tuple(tape.select(rows) for tape in state.tapes))

    def start(self, memory: LstmnState) -> LstmnState:
        """Return the state itself: a search continues from the state after the prompt."""
        return memory

    def detach(self, state: LstmnState) -> LstmnState:
        """Return the state without its gradient, with at most `max_slots` slots in each tape."""
        return LstmnState(tuple(tape.detach(self.max_slots) for tape in state.tapes))

    def teacher_forced(
        self, memory: LstmnState | None, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
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


class LstmnFusionMemory(NamedTuple):
    """The source, for each layer of a deep decoder; the top layer only for shallow fusion."""

    memory: tuple[Memory, ...]


class LstmnFusionState(NamedTuple):
    """The state of a search: state of each layer, its memory, and the index of its source."""

    layers: tuple[FusedTapeState, ...]
    memory: tuple[Memory, ...]
    origin: Int[Tensor, " n"]


class LstmnFusion(nn.Module):
    """An encoder and a decoder of tape LSTMs, with attention from decoder to encoder (sec. 4).

    Deep `fusion`: each cell attends to the tapes of the same layer of the source, with its own gate
    (`layers.tape_lstm.FusedTapeLSTM`). Shallow: as in Bahdanau et al. 2015, the top h_{t-1} attends
    to the top h_j of the source. The context and the word are the input of the first layer.
    # differs: the decoder's tapes start empty.
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
        normalize: str = "softmax",
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        check_positive("layers", layers)
        if fusion not in ("deep", "shallow"):
            raise InputError(f"fusion must be 'deep' or 'shallow', not {fusion!r}")
        hidden_dim = hidden_dim or dim
        align_dim = align_dim or hidden_dim
        self.dropout, self.deep = dropout, fusion == "deep"
        self.source_words = Embedding(source_size, dim)
        self.target_words = Embedding(target_size, dim)
        decoder_layer, decoder_input_dim = (
            (FusedTapeLSTM, dim) if self.deep else (TapeLSTM, dim + hidden_dim)
        )
        self.encoder, self.decoder = (
            nn.ModuleList(
                kind(hidden_dim if layer else input_dim, hidden_dim, align_dim, normalize)
                for layer in range(layers)
            )
            for kind, input_dim in ((TapeLSTM, dim), (decoder_layer, decoder_input_dim))
        )
        self.attention = None
        if not self.deep:
            score = Additive(hidden_dim, hidden_dim, align_dim)
            self.attention = Attention(score, build_normalizer(normalize))
        self.cross_attentions = (
            tuple(f"decoder.{layer}.cross" for layer in range(layers))
            if self.deep
            else ("attention",)
        )
        self.output = Linear(hidden_dim, target_size)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> LstmnFusionMemory:
        """Encode the source; padding is on the right, so no word attends to it."""
        x, memory = self.drop(self.source_words(source)), list[Memory]()
        for layer, decoder_layer in zip(self.encoder, self.decoder, strict=True):
            x, tape = cast("TapeLSTM", layer)(x, cast("TapeLSTM", layer).initial_tape(len(x)))
            if isinstance(decoder_layer, FusedTapeLSTM):
                memory.append(decoder_layer.cross.remember(x, valid, tape.memory.values))
            x = self.drop(x)
        if self.attention is not None:
            memory.append(self.attention.remember(x, valid))
        return LstmnFusionMemory(tuple(memory))

    def teacher_forced(
        self, memory: LstmnFusionMemory, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t h"]:
        return self.run_layers(self.start(memory), target)[0]

    def logits(self, states: Float[Tensor, "*b h"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: LstmnFusionMemory) -> LstmnFusionState:
        rows = len(memory.memory[0].keys)
        origin = torch.arange(rows, device=self.output.weight.device)
        layers = (cast("TapeLSTM", layer) for layer in self.decoder)
        layer_states = tuple(
            FusedTapeState(layer.initial_tape(rows), layer.cell.initial_state(rows)[0])
            for layer in layers
        )
        return LstmnFusionState(layer_states, memory.memory, origin)

    def step(
        self, state: LstmnFusionState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], LstmnFusionState]:
        states, state = self.run_layers(state, tokens[:, None])
        return self.logits(states[:, 0]).log_softmax(-1), state

    def select(self, state: LstmnFusionState, rows: Int[Tensor, " m"]) -> LstmnFusionState:
        memory, origin = state.memory, state.origin.index_select(0, rows)
        if not torch.equal(origin, state.origin):  # else each row still has the same source
            memory = tuple(layer.select(rows) for layer in memory)
        return LstmnFusionState(
            tuple(layer_state.select(rows) for layer_state in state.layers), memory, origin
        )

    def run_layers(
        self, state: LstmnFusionState, target: Int[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t h"], LstmnFusionState]:
        x, layers = self.drop(self.target_words(target)), list[FusedTapeState]()
        if self.attention is not None:
            return self.decode_shallow(self.attention, state, x)
        for layer, layer_state, source in zip(
            self.decoder, state.layers, state.memory, strict=True
        ):
            x, layer_state = cast("FusedTapeLSTM", layer).forward_with_source(
                x, layer_state, source
            )
            x = self.drop(x)
            layers.append(layer_state)
        return x, state._replace(layers=tuple(layers))

    def decode_shallow(
        self, attention: Attention, state: LstmnFusionState, words: Tensor
    ) -> tuple[Tensor, LstmnFusionState]:
        """Decode step by step, because each step needs the top state of the last step."""
        tapes, h, outputs = (
            [layer_state.tape for layer_state in state.layers],
            state.layers[-1].read,
            [],
        )
        for word in words.split(1, 1):
            x = torch.cat([word, attention(h[:, None], state.memory[0])], -1)
            for index, layer in enumerate(self.decoder):
                x, tapes[index] = layer(x, tapes[index])
                h, x = x[:, 0], self.drop(x)
            outputs.append(x)
        layers = tuple(FusedTapeState(tape, h) for tape in tapes)
        return torch.cat(outputs, 1), state._replace(layers=layers)

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
