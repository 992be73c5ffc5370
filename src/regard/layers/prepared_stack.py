"""Transformer blocks in inference: the equations of transformer_block.py, and nothing else.

A stack that nobody observes needs neither the calls of its modules nor their checks. Its weights
are collected at the start of a search or an encoding. Everything else keeps the plain path:
training, observed or edited attention, hooks of modules, other scores than the dot product.

a: inputs   b: rows of one input   n = a * b: rows   t, s: positions   h: heads   d: width
"""

from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.multihead import MultiHead
from regard.attention.normalizers import softmax
from regard.attention.scores import Dot, ScaledDot
from regard.attention.validation import check_finite
from regard.kernels.linear import Linear
from regard.kernels.prepared import PreparedLinear
from regard.kernels.steps import Norm, add_and_norm
from regard.layers.activations import output_function
from regard.layers.positions import check_states
from regard.layers.transformer_block import TransformerBlock, TransformerStack


class PreparedHeads(NamedTuple):
    """A multi-head attention: the projections of its input and of its output."""

    project: PreparedLinear  # to query, key and value; of an attention to a memory, to the query
    out: PreparedLinear
    heads: int
    groups: int
    scale: float

    @staticmethod
    def of(module: MultiHead, *, reads_memory: bool) -> "PreparedHeads":
        inputs = (module.to_query, module.to_key, module.to_value)
        project = PreparedLinear(inputs[:1] if reads_memory else inputs)
        is_scaled = cast("Dot", module.attention.score).is_scaled
        scale = module.head_dim**-0.5 if is_scaled else 1.0
        out = PreparedLinear([module.out])
        return PreparedHeads(project, out, module.heads, module.groups, scale)

    def split(
        self, projected: Float[Tensor, "n _"], inputs: int, length: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return query [a h t dh], keys and values [a g t dh] of each head."""
        parts = projected.view(inputs, length, self.heads + 2 * self.groups, -1).transpose(1, 2)
        query, keys, values = parts.split([self.heads, self.groups, self.groups], 1)
        return query, keys, values

    def split_step(self, projected: Float[Tensor, "n _"]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return query [n h dh] and the new keys and values [n g dh] of one position."""
        parts = projected.unflatten(1, (self.heads + 2 * self.groups, -1))
        query, keys, values = parts.split([self.heads, self.groups, self.groups], 1)
        return query, (keys, values)

    def attend(
        self,
        query: Float[Tensor, "a h b dh"],
        keys: Float[Tensor, "a g s dh"],
        values: Float[Tensor, "a g s dh"],
        mask: Float[Tensor, "a #h #b s"] | None = None,
    ) -> Float[Tensor, "n d"]:
        """Return the output of each query."""
        context = F.scaled_dot_product_attention(
            query,
            keys,
            values,
            attn_mask=mask,
            scale=self.scale,
            enable_gqa=self.heads != self.groups,
        )
        return self.out(context.transpose(1, 2).flatten(2).flatten(0, 1))


class PreparedBlock(NamedTuple):
    """The parts of a block, in their order."""

    is_pre_norm: bool
    self_heads: PreparedHeads
    self_norm: Norm
    cross_heads: PreparedHeads | None
    cross_norm: Norm | None
    widen: PreparedLinear
    narrow: PreparedLinear
    feed_norm: Norm

    @staticmethod
    def of(block: TransformerBlock) -> "PreparedBlock":
        cross, norm = block.cross_attention, block.cross_norm
        return PreparedBlock(
            block.is_pre_norm,
            PreparedHeads.of(block.self_attention, reads_memory=False),
            Norm.of(block.self_norm),
            None if cross is None else PreparedHeads.of(cross, reads_memory=True),
            None if norm is None else Norm.of(norm),
            PreparedLinear([block.feed.widen], output_function(block.feed.activation)),
            PreparedLinear([block.feed.narrow]),
            Norm.of(block.feed_norm),
        )

    def before(self, x: Float[Tensor, "n d"], norm: Norm) -> Float[Tensor, "n d"]:
        """Return the input of a sublayer."""
        return norm(x) if self.is_pre_norm else x

    def after(
        self, x: Float[Tensor, "n d"], change: Float[Tensor, "n d"], norm: Norm
    ) -> Float[Tensor, "n d"]:
        """Add the output of a sublayer, which is overwritten."""
        return add_and_norm(x, change, None if self.is_pre_norm else norm)

    def feed(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Return the states after the feed-forward layer."""
        return self.after(
            x, self.narrow(self.widen(self.before(x, self.feed_norm))), self.feed_norm
        )


class PreparedStack(NamedTuple):
    """The blocks of a stack, and the norm after the last one."""

    blocks: list[PreparedBlock]
    norm: Norm | None

    def encode(
        self, states: Float[Tensor, "a t d"], valid: Bool[Tensor, "a t"] | None
    ) -> Float[Tensor, "a t d"]:
        """Return the states of an encoder: every position attends to all that are valid."""
        inputs, length = states.shape[:2]
        mask = None if valid is None else energy_mask(valid, states.dtype)
        x = states.flatten(0, 1)
        for block in self.blocks:
            heads = block.self_heads
            projected = heads.project(block.before(x, block.self_norm))
            parts = heads.split(projected, inputs, length)
            x = block.after(x, heads.attend(*parts, mask), block.self_norm)
            x = block.feed(x)
        return (x if self.norm is None else self.norm(x)).view(states.shape)


def encode_stack(
    stack: TransformerStack, states: Float[Tensor, "a t d"], valid: Bool[Tensor, "a t"] | None
) -> Float[Tensor, "a t d"]:
    """Return the states of an encoder, by the prepared stack if nothing needs the plain one."""
    prepared = prepare_stack(stack)
    if prepared is None:
        return stack(states, valid)[0]
    weight = prepared.blocks[0].feed_norm.weight
    check_states(states, len(weight), weight)
    outputs = prepared.encode(states, valid)
    check_finite("states", outputs)
    return outputs


def prepare_stack(stack: TransformerStack) -> PreparedStack | None:
    """Collect the weights of a stack; None if it has to keep the plain path."""
    blocks = cast("list[TransformerBlock]", list(stack.layers))
    if (
        torch.is_grad_enabled()
        or stack.training
        or torch.compiler.is_compiling()
        or torch.is_autocast_enabled(next(stack.parameters()).device.type)
        or not all(map(is_plain_block, blocks))
    ):
        return None
    norm = None if stack.norm is None else Norm.of(stack.norm)
    return PreparedStack([PreparedBlock.of(block) for block in blocks], norm)


def is_plain_block(block: TransformerBlock) -> bool:
    """Return whether a block computes its equations alone: nothing is observed or exchanged."""
    return all(is_plain_module(module) for module in block.modules())


def is_plain_module(module: nn.Module) -> bool:
    if module._forward_hooks or module._forward_pre_hooks:
        return False
    match module:
        case Attention():
            is_dot = type(module.score) in (Dot, ScaledDot)
            return (
                is_dot
                and module.normalize is softmax
                and module.window is None
                and (module.hook is None)
            )
        case MultiHead():
            return module.rotary is None and module.relative is None
        case nn.Linear():
            return type(module) is Linear and isinstance(module.weight, nn.Parameter)
        case _:
            return True


def energy_mask(valid: Bool[Tensor, "a s"], dtype: torch.dtype) -> Float[Tensor, "a 1 1 s"] | None:
    """Return 0 at valid slots and -inf at others, for the fused kernel; None if all are valid."""
    if valid.all():
        return None
    return torch.zeros(valid.shape, dtype=dtype, device=valid.device).masked_fill_(
        ~valid, -torch.inf
    )[:, None, None]
