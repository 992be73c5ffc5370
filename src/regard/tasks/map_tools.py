"""Shared parts of the attention maps of tasks."""

from collections.abc import Callable, Mapping, Sequence

import torch

from regard.batching.device import device_of
from regard.decoding.stepper import MemoryT, StateT, Stepper
from regard.errors import InputError
from regard.text.special import START
from regard.view.annotations import MapAnnotations, TokenChoice
from regard.view.attention_map import AttentionMap

MAX_TOKEN_CHOICES = 8  # alternatives that are shown for each step
POOLED_LABEL = "(the text)"  # the query of an attention that pools a text
NO_ANNOTATIONS = MapAnnotations()


def word_indices(words: Sequence[int | None]) -> list[int]:
    """Return word numbers from 0; a token that belongs to no word is a word of its own."""
    indices, previous = list[int](), None
    for word in words:
        is_same = bool(indices) and word is not None and word == previous
        indices.append(indices[-1] + (not is_same) if indices else 0)
        previous = word
    return indices


def step_log_probs(
    stepper: Stepper[MemoryT, StateT], memory: MemoryT, ids: Sequence[int]
) -> torch.Tensor:
    """Return the log-probabilities [t v] of a search that writes these ids and then ends."""
    state, rows, device = stepper.start(memory), list[torch.Tensor](), device_of(memory)
    for token_id in (START, *ids):
        log_probs, state = stepper.step(state, torch.tensor([token_id], device=device))
        rows.append(log_probs[0])
    return torch.stack(rows)


def token_choices(
    logits: torch.Tensor, token: Callable[[int], str]
) -> tuple[tuple[TokenChoice, ...], ...]:
    """Return the likeliest tokens at each position, with their probabilities."""
    probabilities, ids = logits.softmax(-1).topk(min(MAX_TOKEN_CHOICES, logits.shape[-1]))
    return tuple(
        tuple(TokenChoice(token(n), p) for n, p in zip(row_ids, row, strict=True))
        for row_ids, row in zip(ids.tolist(), probabilities.tolist(), strict=True)
    )


def token_map(
    weights: Mapping[str, torch.Tensor],
    tokens: Sequence[str],
    title: str,
    annotations: MapAnnotations = NO_ANNOTATIONS,
    word_ids: Sequence[int] | None = None,
) -> AttentionMap:
    """Return the map of the attentions among these tokens, else of those that pool them.

    Every key has a token: weights over more or fewer positions are not shown.
    """
    count = len(tokens)
    layers = {
        name: layer[0] for name, layer in weights.items() if layer.shape[-2:] == (count, count)
    }
    if layers:
        both_word_ids = None if word_ids is None else (word_ids, word_ids)
        return AttentionMap(
            layers, tokens, title=title, word_ids=both_word_ids, annotations=annotations
        )
    pooled = {name: layer[0] for name, layer in weights.items() if layer.shape[-1] == count}
    if not pooled:
        raise InputError("this run has no attention over the tokens of a text to show")
    hops = next(iter(pooled.values())).shape[-2]
    queries = [POOLED_LABEL] if hops == 1 else [f"{POOLED_LABEL} {n}" for n in range(1, hops + 1)]
    pooled_word_ids = None if word_ids is None else (range(hops), word_ids)
    return AttentionMap(pooled, queries, tokens, kind="pool", title=title, word_ids=pooled_word_ids)
