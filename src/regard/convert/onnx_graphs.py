"""The models as plain graphs for ONNX: no kernels, no caches, no checks of their own.

    bert          ids, mask (, segments) -> states (, pooled) (, logits)
    gpt2          ids, past_keys, past_values -> logits, keys, values
    transformer   ids, mask -> memory_keys, memory_values
                  ids, mask, memory_keys, memory_values, past_keys, past_values
                  -> logits, keys, values

A mask is 1 for tokens and 0 for padding. `keys` and `values` include the past, which may be empty.
b: batch   t: tokens   p: tokens before   s: slots   h: heads   d: width   e: width of a head
l: layers

    ids [b t]   mask [b s]   keys, values [l b h s e]   logits [b t v]

Shapes are not checked, because torch traces these functions with lengths that have no numbers.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.multihead import MultiHead
from regard.engines.ctranslate2_model import position_table
from regard.layers.embedding import Embedding
from regard.layers.transformer_block import TransformerBlock, TransformerStack
from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.models.transformer import Transformer
from regard.tasks.exportable import ExportableHead


class BertGraph(nn.Module):
    """Encodes tokens, and applies the head of a classifier or a tagger if there is one."""

    def __init__(self, model: Bert, head: ExportableHead | None = None):
        super().__init__()
        self.model, self.is_sequence = model, head is not None and head.outputs == "sequence"
        self.weight = None if head is None else head.weight.detach()
        self.bias = None if head is None else head.bias.detach()

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        segments: Tensor | None = None,
    ) -> Sequence[Tensor]:
        model = self.model
        x = embed(model.words, ids) + model.position.weight[: ids.shape[1]]
        if segments is not None and model.segments is not None:
            x = x + F.embedding(segments, model.segments.weight)
        x = normalized(model.norm, x)
        for block in blocks(model.encoder):
            x, _, _ = run_block(block, x, allowed=mask[:, None, None].bool())
        outputs = [final_states(model.encoder, x)]
        if model.pooler is not None:
            outputs.append(project(model.pooler, outputs[0][:, 0]).tanh())
        if self.weight is not None:
            inputs = outputs[-1] if self.is_sequence else outputs[0]
            outputs.append(F.linear(inputs, self.weight, self.bias))
        return tuple(outputs)


class Gpt2Graph(nn.Module):
    """Reads tokens after a past; returns the logits of the next ones, and the new past."""

    def __init__(self, model: Gpt2):
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, past_keys: Tensor, past_values: Tensor) -> Sequence[Tensor]:
        model, past = self.model, past_keys.shape[3]
        positions = past + torch.arange(ids.shape[1])
        x = embed(model.words, ids) + F.embedding(positions, model.position.weight)
        x, keys, values = run_decoder(model.decoder, x, (past_keys, past_values))
        return F.linear(x, model.words.weight, model.words.bias), keys, values


class TransformerEncoderGraph(nn.Module):
    """Reads a source; returns the keys and values of each layer of the decoder."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model
        self.table = position_table(model.source_position, model.encoder).detach()

    def forward(self, ids: Tensor, mask: Tensor) -> Sequence[Tensor]:
        model = self.model
        x = embed(model.source_words, ids) + self.table[: ids.shape[1]]
        for block in blocks(model.encoder):
            x, _, _ = run_block(block, x, allowed=mask[:, None, None].bool())
        x, keys, values = final_states(model.encoder, x), list[Tensor](), list[Tensor]()
        for block in blocks(model.decoder):
            heads = cast("MultiHead", block.cross_attention)
            keys.append(split_heads(project(heads.to_key, x), heads.heads))
            values.append(split_heads(project(heads.to_value, x), heads.heads))
        return torch.stack(keys), torch.stack(values)


class TransformerDecoderGraph(nn.Module):
    """Reads target tokens after a past; returns the logits of the next ones, and the new past."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model
        self.table = position_table(model.target_position, model.decoder).detach()

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        memory_keys: Tensor,
        memory_values: Tensor,
        past_keys: Tensor,
        past_values: Tensor,
    ) -> Sequence[Tensor]:
        model, past = self.model, past_keys.shape[3]
        positions = past + torch.arange(ids.shape[1])
        x = embed(model.table, ids) + F.embedding(positions, self.table)
        x, keys, values = run_decoder(
            *(model.decoder, x, (past_keys, past_values)),
            memory=(memory_keys, memory_values),
            mask=mask,
        )
        return F.linear(x, model.output.weight, model.output.bias), keys, values


def run_decoder(
    stack: TransformerStack,
    x: Tensor,
    past: tuple[Tensor, Tensor],
    memory: tuple[Tensor, Tensor] | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the states after all layers, and keys and values with the past before them."""
    start, length = past[0].shape[3], x.shape[1]
    slots = torch.arange(start + length)
    allowed = (slots <= start + torch.arange(length)[:, None])[None, None]
    keys, values = list[Tensor](), list[Tensor]()
    for layer, block in enumerate(blocks(stack)):
        x, key, value = run_block(
            *(block, x, allowed),
            past=(past[0][layer], past[1][layer]),
            memory=None if memory is None else (memory[0][layer], memory[1][layer]),
            memory_allowed=None if mask is None else mask[:, None, None].bool(),
        )
        keys.append(key)
        values.append(value)
    return final_states(stack, x), torch.stack(keys), torch.stack(values)


def run_block(
    block: TransformerBlock,
    x: Tensor,
    allowed: Tensor,
    past: tuple[Tensor, Tensor] | None = None,
    memory: tuple[Tensor, Tensor] | None = None,
    memory_allowed: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the new states, and the keys and values of its self-attention."""
    heads, is_pre = block.self_attention, block.is_pre_norm
    inner = normalized(block.self_norm, x) if is_pre else x
    query, key, value = (
        split_heads(project(layer, inner), heads.heads)
        for layer in (heads.to_query, heads.to_key, heads.to_value)
    )
    if past is not None:
        key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
    x = x + project(heads.out, attend(query, key, value, allowed))
    x = x if is_pre else normalized(block.self_norm, x)
    if memory is not None and block.cross_attention is not None and block.cross_norm is not None:
        heads = block.cross_attention
        inner = normalized(block.cross_norm, x) if is_pre else x
        query = split_heads(project(heads.to_query, inner), heads.heads)
        x = x + project(heads.out, attend(query, *memory, memory_allowed))
        x = x if is_pre else normalized(block.cross_norm, x)
    inner = normalized(block.feed_norm, x) if is_pre else x
    x = x + project(block.feed.narrow, block.feed.activation(project(block.feed.widen, inner)))
    return (x if is_pre else normalized(block.feed_norm, x)), key, value


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    allowed: Tensor | None,
) -> Tensor:
    """softmax(q k' / sqrt(e)) v, over the allowed slots; the heads side by side."""
    energy = query @ keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if allowed is not None:
        energy = energy.masked_fill(~allowed, -torch.inf)
    return (energy.softmax(-1) @ values).transpose(1, 2).flatten(2)


def embed(words: Embedding, ids: Tensor) -> Tensor:
    return F.embedding(ids, words.weight) * words.scale


def project(layer: nn.Linear, x: Tensor) -> Tensor:
    return F.linear(x, layer.weight, layer.bias)


def normalized(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    return F.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


def split_heads(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def final_states(stack: TransformerStack, x: Tensor) -> Tensor:
    return x if stack.norm is None else normalized(stack.norm, x)


def blocks(stack: TransformerStack) -> list[TransformerBlock]:
    return cast("list[TransformerBlock]", list(stack.layers))
