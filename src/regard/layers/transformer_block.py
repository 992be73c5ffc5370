"""The transformer block: sublayers with a residual and a norm.

    post-norm    x = norm(x + sublayer(x))       Vaswani et al. 2017, 3.1
    pre-norm     x = x + sublayer(norm(x))       Radford et al. 2019; Xiong et al. 2020, fig. 1

The sublayers are self-attention, then attention to a memory (if the block has one), then the
feed-forward layer.
b: batch   t: positions   k: memory slots   d: the model's width
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, cast

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.masks import Mask
from regard.attention.memory import Memory
from regard.attention.multihead import MultiHead
from regard.attention.scores import ScaledDot
from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.activations import ActivationFunction
from regard.layers.block_stack import BlockStack
from regard.layers.dropout import dropout
from regard.layers.positions import check_states


class FeedForward(nn.Module):
    """W2 f(W1 x + b1) + b2  (Vaswani et al. 2017, eq. 2, with f = relu)."""

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        *,
        activation: ActivationFunction = F.relu,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_positive("hidden_dim", hidden_dim)
        check_dropout(dropout)
        self.activation, self.dropout = activation, dropout
        self.widen = Linear(dim, hidden_dim)
        self.narrow = Linear(hidden_dim, dim)

    def forward(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        hidden = self.activation(self.widen(states))
        if self.training and self.dropout:
            hidden = dropout(hidden, self.dropout)
        return self.narrow(hidden)


class TransformerBlock(nn.Module):
    """One layer of an encoder, of a decoder, or of a language model.

    `memory_dim` is the width of the memory that a decoder attends to; None: no such attention.
    `dropout` acts on the output of each sublayer, `attention_dropout` (default: `dropout`) on the
    weights. `hidden_dropout` acts inside the feed-forward layer, as in torch's layers; the papers
    do not have it. `attention` builds another attention than the scaled dot product; it then
    brings its own dropout.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        hidden_dim: int,
        *,
        norm: Literal["post", "pre"] = "post",
        memory_dim: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float | None = None,
        hidden_dropout: float = 0.0,
        activation: ActivationFunction = F.relu,
        norm_eps: float = 1e-5,
        groups: int | None = None,
        rotary: nn.Module | None = None,
        relative: nn.Module | None = None,
        attention: Callable[[], Attention] | None = None,
    ):
        super().__init__()
        if norm not in ("post", "pre"):
            raise InputError(f"norm must be 'post' or 'pre', not {norm!r}")
        if attention is not None and attention_dropout is not None:
            raise InputError(
                f"attention_dropout ({attention_dropout}) has no effect on a custom attention; "
                "build that attention with its own dropout"
            )
        check_dropout(dropout)
        weight_dropout = dropout if attention_dropout is None else attention_dropout
        build_attention = attention or (lambda: Attention(ScaledDot(), dropout=weight_dropout))
        self.dim, self.is_pre_norm, self.dropout = dim, norm == "pre", dropout

        self.self_attention = MultiHead(
            build_attention(), dim, heads, groups=groups, rotary=rotary, relative=relative
        )
        self.self_norm = nn.LayerNorm(dim, norm_eps)
        self.cross_attention = self.cross_norm = None
        if memory_dim is not None:
            self.cross_attention = MultiHead(
                build_attention(), dim, heads, memory_dim=memory_dim, groups=groups
            )
            self.cross_norm = nn.LayerNorm(dim, norm_eps)
        self.feed = FeedForward(dim, hidden_dim, activation=activation, dropout=hidden_dropout)
        self.feed_norm = nn.LayerNorm(dim, norm_eps)

    def remember(
        self, states: Float[Tensor, "b k ds"], valid: Bool[Tensor, "b k"] | None = None
    ) -> Memory:
        """Return the `memory` for `forward`; it serves for all steps."""
        if self.cross_attention is None:
            raise InputError("remember needs a block with memory_dim, which this one does not have")
        heads = self.cross_attention
        check_states(states, heads.memory_dim, heads.out.weight)
        return self.cross_attention.remember(states, valid)

    def forward(
        self,
        states: Float[Tensor, "b t d"],
        valid: Bool[Tensor, "b t"] | None = None,
        mask: Mask | None = None,
        past: Memory | None = None,
        memory: Memory | None = None,
    ) -> tuple[Float[Tensor, "b t d"], Memory]:
        """Return the new states, and the `past` for the states after these.

        `past` holds the keys and values of earlier states; its length is the position of the first
        state. `valid` and `mask` apply to states and past as slots. An invalid state also gets an
        output, which has no meaning.
        """
        check_states(states, self.dim, self.feed.narrow.bias)
        start = 0 if past is None else past.slots
        inner = self.self_norm(states) if self.is_pre_norm else states
        context, slots = self.self_attention.self_attend(inner, valid, mask, past)
        states = self.add_residual(states, context, self.self_norm)

        if self.cross_attention is not None and self.cross_norm is not None:
            if memory is None:
                raise InputError("memory is missing; make it with remember() of this block")
            inner = self.cross_norm(states) if self.is_pre_norm else states
            states = self.add_residual(
                states, self.cross_attention(inner, memory, start=start), self.cross_norm
            )
        elif memory is not None:
            raise InputError("memory needs a block with memory_dim, which this one does not have")

        inner = self.feed_norm(states) if self.is_pre_norm else states
        return self.add_residual(states, self.feed(inner), self.feed_norm), slots

    def add_residual(self, states: Tensor, change: Tensor, norm: nn.LayerNorm) -> Tensor:
        if self.training and self.dropout:
            change = dropout(change, self.dropout)
        states = states + change
        return states if self.is_pre_norm else norm(states)


class TransformerStack(BlockStack):
    """Stacked blocks, with a final norm after pre-norm blocks.

    `past` and `memory` are lists with one entry for each block. `forward` returns the past,
    `remember` the memory.
    """

    def __init__(self, blocks: Iterable[TransformerBlock]):
        super().__init__()
        layers = list(blocks)
        if not layers:
            raise InputError("blocks is empty; a stack needs at least one")
        self.layers, last = nn.ModuleList(layers), layers[-1]
        self.norm = nn.LayerNorm(last.dim, last.feed_norm.eps) if last.is_pre_norm else None

    def gathered_modules(self) -> Iterator[nn.Module]:
        """Yield the projections of a memory, which `remember` calls, before their blocks."""
        for block in cast("list[TransformerBlock]", self.layers):
            if block.cross_attention is not None:
                yield from (block.cross_attention.to_key, block.cross_attention.to_value)
        yield from super().gathered_modules()

    def remember(
        self, states: Float[Tensor, "b k ds"], valid: Bool[Tensor, "b k"] | None = None
    ) -> list[Memory]:
        return [
            block.remember(states, valid) for block in cast("list[TransformerBlock]", self.layers)
        ]

    def forward(
        self,
        states: Float[Tensor, "b t d"],
        valid: Bool[Tensor, "b t"] | None = None,
        mask: Mask | None = None,
        past: Sequence[Memory] | None = None,
        memory: Sequence[Memory] | None = None,
    ) -> tuple[Float[Tensor, "b t d"], list[Memory]]:
        slots = list[Memory]()
        for i, block in enumerate(self.layers):
            states, block_slots = self.block_function(block)(
                states,
                valid,
                mask,
                None if past is None else past[i],
                None if memory is None else memory[i],
            )
            slots.append(block_slots)
        return states if self.norm is None else self.norm(states), slots
