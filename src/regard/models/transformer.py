"""The transformer: Vaswani et al. 2017, "Attention is all you need" (1706.03762).

    x         = dropout(sqrt(d) E id + P)                                        3.4, 3.5, 5.4
    encoder   layers of:  LN(x + self-attention), LN(x + feed-forward)           3.1
    decoder   layers of:  LN(x + causal self-attention), LN(x + attention to the encoder's output),
              LN(x + feed-forward)
    attention(q, k, v) = softmax(q k' / sqrt(d / heads)) v in each head          eq. 1
    p(y_t | …) = softmax(E x_t)                 E: the same table, if tied       3.4

norm="pre" puts LN inside the residual branch, and one more after each stack (Xiong et al. 2020).
b: batch   s: source   t: target   n: rows of a search   v: target_size   d: dim
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.build import build_attention
from regard.attention.masks import causal
from regard.attention.memory import Memory
from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.kernels.log_probabilities import log_probabilities
from regard.layers.activations import build_activation
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.positions import LearnedPositions, SinusoidalPositions, concatenated_sinusoids
from regard.layers.prepared_stack import encode_stack, prepare_stack
from regard.layers.step_state import StepState, start_steps
from regard.layers.transformer_block import TransformerBlock, TransformerStack


class TransformerMemory(NamedTuple):
    """Keys and values of the source, for each layer of the decoder."""

    memory: tuple[Memory, ...]


class TransformerState(NamedTuple):
    """Keys and values of target and source, for each layer, and the index of the source."""

    past: tuple[Memory, ...] | None
    memory: tuple[Memory, ...]
    origin: Int[Tensor, " n"]


class Transformer(nn.Module):
    """The encoder-decoder of the equations above.

    The paper's base model is dim=512, heads=8, layers=6, dropout=0.1, tie_embeddings="all".
    `hidden_dim` is the width of the feed-forward layer (default: 4 dim). `tie_embeddings` "all" has
    one table for source words, target words and output, "decoder" one for target words and output.
    `attention_dropout` (on weights) and `hidden_dropout` (after ReLU) are not in the paper.
    `max_positions` limits learned positions and the location score. `positions` "halves" has all
    sines before the cosines. `output_bias` gives a tied output layer a bias; an untied one always
    has one. MarianNMT (Junczys-Dowmunt et al. 2018) has both, and swish.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        dim: int = 256,
        heads: int = 8,
        layers: int = 3,
        decoder_layers: int | None = None,
        hidden_dim: int | None = None,
        norm: Literal["post", "pre"] = "post",
        tie_embeddings: Literal["none", "decoder", "all"] = "none",
        scale_embeddings: bool = True,
        positions: Literal["sinusoidal", "halves", "learned"] = "sinusoidal",
        max_positions: int = 512,
        score: str = "scaled_dot",
        normalize: str = "softmax",
        activation: str = "relu",
        output_bias: bool = False,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
    ):
        super().__init__()
        check_positive("heads", heads)
        check_dropout(dropout)
        check_choices(positions, tie_embeddings, source_size, target_size)
        attention = partial(
            build_attention,
            *(score, dim // heads, dim // heads),
            normalize=normalize,
            slots=max_positions,
            heads=heads,
            dropout=attention_dropout,
        )
        block = partial(
            TransformerBlock,
            *(dim, heads, hidden_dim or 4 * dim),
            norm=norm,
            dropout=dropout,
            hidden_dropout=hidden_dropout,
            activation=build_activation(activation),
            attention=attention,
        )
        build_position = build_positions(positions, max_positions)
        table = partial(Embedding, dim=dim, scaled=scale_embeddings)
        self.dropout, depth = dropout, decoder_layers or layers
        self.source_words = table(source_size, bias=output_bias and tie_embeddings == "all")
        # None: a second name for the table would save it twice
        bias = output_bias and tie_embeddings == "decoder"
        self.target_words = None if tie_embeddings == "all" else table(target_size, bias=bias)
        self.source_position, self.target_position = build_position(dim), build_position(dim)
        self.encoder = TransformerStack(block() for _ in range(layers))
        self.decoder = TransformerStack(block(memory_dim=dim) for _ in range(depth))
        self.out = Linear(dim, target_size) if tie_embeddings == "none" else None
        self.cross_attentions = tuple(f"decoder.layers.{i}.cross_attention" for i in range(depth))
        for module in self.modules():  # from the authors' tensor2tensor; not in the paper
            if isinstance(module, nn.Linear):
                for weight in module.parameters():
                    nn.init.xavier_uniform_(weight) if weight.ndim > 1 else nn.init.zeros_(weight)

    def remember(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> TransformerMemory:
        words = self.drop(self.source_position(self.source_words(source)))
        states = encode_stack(self.encoder, words, valid)
        return TransformerMemory(tuple(self.decoder.remember(states, valid)))

    def teacher_forced(
        self, memory: TransformerMemory, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        words = self.drop(self.target_position(self.words(target)))
        return self.decoder(words, mask=causal, memory=memory.memory)[0]

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.table.logits(states) if self.out is None else self.out(states)

    def start(self, memory: TransformerMemory) -> TransformerState | StepState:
        stack = prepare_stack(self.decoder)
        if stack is not None:
            return start_steps(stack, memory.memory)
        keys = memory.memory[0].keys
        return TransformerState(None, memory.memory, torch.arange(len(keys), device=keys.device))

    def step(
        self, state: TransformerState | StepState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], TransformerState | StepState]:
        if isinstance(state, StepState):
            words = self.target_position(self.words(tokens[:, None]), state.length)
            states, state = state.step(words[:, 0])
            return log_probabilities(self.logits(states)), state
        past, memory, origin = state
        start = 0 if past is None else past[0].slots
        words = self.drop(self.target_position(self.words(tokens[:, None]), start))
        states, past = self.decoder(words, mask=causal, past=past, memory=memory)
        return self.logits(states[:, 0]).log_softmax(-1), TransformerState(
            tuple(past), memory, origin
        )

    def select(
        self, state: TransformerState | StepState, rows: Int[Tensor, " m"]
    ) -> TransformerState | StepState:
        if isinstance(state, StepState):
            return state.select(rows)
        past, memory, origin = state
        if past is not None:
            past = tuple(layer.select(rows) for layer in past)
        selected = origin.index_select(0, rows)
        if not torch.equal(selected, origin):  # else each row still has the same source
            memory = tuple(layer.select(rows) for layer in memory)
        return TransformerState(past, memory, selected)

    @property
    def output(self) -> nn.Linear | Embedding:
        """The layer before the softmax."""
        return self.table if self.out is None else self.out

    @property
    def table(self) -> Embedding:
        """The vectors of target words."""
        return self.source_words if self.target_words is None else self.target_words

    def words(self, target: Tensor) -> Tensor:
        return self.table(target)

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def build_positions(positions: str, max_positions: int) -> Callable[[int], nn.Module]:
    """Return a function from a width to the module that adds positions."""
    match positions:
        case "sinusoidal":
            return SinusoidalPositions
        case "halves":
            return partial(SinusoidalPositions, order=concatenated_sinusoids)
        case _:
            return partial(LearnedPositions, max_positions)


def check_choices(positions: str, tie_embeddings: str, source_size: int, target_size: int) -> None:
    if positions not in ("sinusoidal", "halves", "learned"):
        raise InputError(
            f"positions must be 'sinusoidal', 'halves' or 'learned', not {positions!r}"
        )
    if tie_embeddings not in ("none", "decoder", "all"):
        raise InputError(
            f"tie_embeddings must be 'none', 'decoder' or 'all', not {tie_embeddings!r}"
        )
    if tie_embeddings == "all" and source_size != target_size:
        raise InputError(
            f"tie_embeddings='all' needs one vocabulary, but source_size {source_size} is not "
            f"target_size {target_size}; use 'decoder', or train one tokenizer on both sides"
        )
