"""Vectors of texts: the states of an encoder, pooled into one vector for each text.

    vector = pooling(states of the real positions, special tokens included),  |vector| = 1 if asked

This is what sentence-transformers computes. n: texts   d: width of the encoder
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from regard.batching.batches import iterate_by_length
from regard.batching.device import move_to_device
from regard.config.encoder_head import TextVectorsConfig
from regard.config.settings import Settings
from regard.layers.output_heads import build_pooling
from regard.models.protocols import AnyEncoder
from regard.tasks.generation import TOKENS_PER_BATCH

SPECIAL_TOKEN_COUNT = 2  # START and END


@dataclass(frozen=True)
class TextVectorOptions:
    """Pooling of states into a vector; texts are cut after `max_tokens` tokens."""

    pooling: Literal["mean", "first", "max"] = "mean"
    normalize: bool = True
    max_tokens: int = 256


@dataclass(frozen=True, slots=True)
class TextRow:
    """The row of one text, and its position among the texts."""

    index: int
    row: Sequence[Any]

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.row), 1


def text_vector_options(settings: Settings) -> TextVectorOptions:
    """Return the options of [vectors]; a text fills all positions of the model by default."""
    config = getattr(settings, "vectors", None)
    if not isinstance(config, TextVectorsConfig):
        raise TypeError(f"{type(settings).__name__} has no [vectors]")
    limit = config.max_tokens or settings.train.max_tokens
    positions = getattr(settings.model, "max_positions", None)
    if positions is not None:
        room = max(1, positions - SPECIAL_TOKEN_COUNT)
        limit = min(config.max_tokens or room, room)
    return TextVectorOptions(config.pooling, config.normalize, limit)


@torch.no_grad()
def embed_rows(
    encoder: AnyEncoder,
    rows: Sequence[Sequence[Any]],
    to_tensors: Callable[[list[Sequence[Any]]], dict[str, Tensor]],
    options: TextVectorOptions,
) -> Float[np.ndarray, "n d"]:
    """Return the vector of each row, which `to_tensors` converts to the inputs of the encoder."""
    encoder.eval()
    pooling, device = (
        build_pooling(options.pooling, encoder.width),
        next(encoder.parameters()).device,
    )
    vectors = np.zeros((len(rows), encoder.width), np.float32)
    examples = [TextRow(index, row) for index, row in enumerate(rows)]
    batches = iterate_by_length(examples, collate=list, tokens_per_batch=TOKENS_PER_BATCH)
    for batch in batches if examples else ():
        inputs = to_tensors([example.row for example in batch])
        encoded = encoder.encode(**move_to_device(inputs, device))
        pooled = pooling(encoded.states, encoded.valid)
        pooled = normalize(pooled, dim=-1) if options.normalize else pooled
        vectors[[example.index for example in batch]] = pooled.float().cpu().numpy()
    return vectors
