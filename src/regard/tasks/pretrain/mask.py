"""The data of BERT's objectives: masked tokens, and pairs of sentences that may be consecutive.

Devlin et al. 2019 (1810.04805), sec. 3.1 and A.1. The caller passes the random generator, so that
each epoch masks other tokens.
b: texts   t: positions   o: ids of text, without special ids
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from regard.errors import InputError

MASKING_RATE = 0.15  # share of the tokens that are targets
MASK_TOKEN_SHARE = 0.8  # share of the targets that the mask replaces
RANDOM_TOKEN_SHARE = 0.1  # share of the targets that a random token replaces; the rest stays
NEXT_SENTENCE_SHARE = 0.5  # share of the pairs whose second part follows the first
SHORT_PAIR_SHARE = 0.1  # share of the pairs with a shorter length, as in the authors' code


class MaskedTokens(NamedTuple):
    """The ids that the model reads, and the positions that it has to predict."""

    ids: Int[Tensor, "b t"]
    target_mask: Bool[Tensor, "b t"]


def mask_tokens(
    ids: Int[Tensor, "b t"],
    maskable: Bool[Tensor, "b t"],
    *,
    mask_id: int,
    text_ids: Int[Tensor, " o"],
    generator: Generator,
    rate: float = MASKING_RATE,
    word_starts: Bool[Tensor, "b t"] | None = None,
) -> MaskedTokens:
    """Choose a share `rate` of the maskable tokens as targets, and replace most of them.

    Of 10 targets, 8 become `mask_id`, 1 becomes any of `text_ids`, and 1 stays. With `word_starts`,
    all tokens of a word are chosen together (whole-word masking, of the authors' later models).
    """
    # differs: the authors choose a fixed number of tokens in each text. Here the draw of each token
    # is independent, so that the share is the same for texts of every length.
    if not 0 < rate < 1:
        raise InputError(f"rate must be between 0 and 1, not {rate}")
    draws = torch.rand(ids.shape, generator=generator).to(ids.device)
    if word_starts is not None:
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        draws = draws.gather(1, positions.where(word_starts | ~maskable, 0).cummax(1).values)
    target_mask = maskable & (draws < rate)
    replacement_draws = torch.rand(ids.shape, generator=generator).to(ids.device)
    random_indices = torch.randint(len(text_ids), ids.shape, generator=generator)
    random_ids = text_ids[random_indices].to(ids.device)
    masked_ids = torch.where(target_mask & (replacement_draws < MASK_TOKEN_SHARE), mask_id, ids)
    is_random = (
        target_mask
        & (replacement_draws >= MASK_TOKEN_SHARE)
        & (replacement_draws < MASK_TOKEN_SHARE + RANDOM_TOKEN_SHARE)
    )
    return MaskedTokens(torch.where(is_random, random_ids, masked_ids), target_mask)


def maskable_positions(
    ids: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"], special_ids: Sequence[int]
) -> Bool[Tensor, "b t"]:
    """Return the positions of tokens that are neither padding nor special."""
    return valid & ~torch.isin(ids, ids.new_tensor(special_ids))


def text_token_ids(size: int, special_ids: Sequence[int]) -> Int[Tensor, " o"]:
    """Return all ids of a vocabulary that are not special."""
    text_ids = torch.tensor(sorted({*range(size)}.difference(special_ids)), dtype=torch.int64)
    if not len(text_ids):
        raise InputError(f"size must leave an id that is not special, and {size} does not")
    return text_ids


class SentencePair(NamedTuple):
    """Two spans of text, and whether the second follows the first in its document."""

    first: list[int]
    second: list[int]
    is_next: bool


def sentence_pairs(
    documents: Sequence[Sequence[Sequence[int]]],
    length: int,
    generator: Generator,
    *,
    short_share: float = SHORT_PAIR_SHARE,
) -> Iterator[SentencePair]:
    """Yield pairs of spans from documents, which are sentences of ids, in the order of the text.

    A span is filled with sentences up to `length` ids and split between two of them. In half of the
    pairs, the second part comes from another document, and the next pair begins with the sentences
    that it replaced. A share `short_share` of the pairs has a random length from 2 to `length`. If
    the last sentence of a document is left over, it is never a first part.
    """
    if length < 2:
        raise InputError(f"length must be at least 2, one id for each part, not {length}")
    nonempty = [[s for s in document if len(s)] for document in documents]
    nonempty = [document for document in nonempty if document]
    if len(nonempty) < 2:
        raise InputError(f"documents must be at least 2 that are not empty, not {len(nonempty)}")
    for index, document in enumerate(nonempty):
        start = 0
        while len(document) - start >= 2:
            target_length = length
            if random_fraction(generator) < short_share:
                target_length = 2 + random_below(length - 1, generator)
            end = max(start + 2, span_end(document, start, target_length))
            split = start + 1 + random_below(end - start - 1, generator)
            first = list(chain.from_iterable(document[start:split]))
            is_next = random_fraction(generator) < NEXT_SENTENCE_SHARE
            if is_next:
                second, start = list(chain.from_iterable(document[split:end])), end
            else:
                second, start = (
                    random_sentences(nonempty, index, target_length - len(first), generator),
                    split,
                )
            yield SentencePair(*truncate_randomly(first, second, length, generator), is_next)


def random_sentences(
    documents: Sequence[Sequence[Sequence[int]]],
    excluded: int,
    target_length: int,
    generator: Generator,
) -> list[int]:
    """Return sentences of another document from a random one on, up to `target_length` ids."""
    index = random_below(len(documents) - 1, generator)
    document = documents[index + (index >= excluded)]
    start = random_below(len(document), generator)
    return list(chain.from_iterable(document[start : span_end(document, start, target_length)]))


def span_end(document: Sequence[Sequence[int]], start: int, target_length: int) -> int:
    """Return the end of the sentences from `start` on, at least one, with `target_length` ids."""
    end, total = start + 1, len(document[start])
    while end < len(document) and total < target_length:
        total += len(document[end])
        end += 1
    return end


def truncate_randomly(
    first: Sequence[int], second: Sequence[int], length: int, generator: Generator
) -> tuple[list[int], list[int]]:
    """Remove ids from a random end of the longer part until both have `length` ids together."""
    parts = (list(first), list(second))
    for _ in range(len(first) + len(second) - length):
        longer = parts[0] if len(parts[0]) > len(parts[1]) else parts[1]
        longer.pop(0 if random_fraction(generator) < 0.5 else -1)
    return parts


def ids_and_segments(pair: SentencePair, start_id: int, end_id: int) -> tuple[list[int], list[int]]:
    """Return START first END second END, and for each id 0 in the first part, 1 in the second."""
    ids = [start_id, *pair.first, end_id, *pair.second, end_id]
    return ids, [0] * (len(pair.first) + 2) + [1] * (len(pair.second) + 1)


def random_below(end: int, generator: Generator) -> int:
    return int(torch.randint(end, (), generator=generator))


def random_fraction(generator: Generator) -> float:
    return float(torch.rand((), generator=generator))
