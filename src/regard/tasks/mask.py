"""What BERT learns from: hidden word pieces, and sentences that follow each other or do not.

Devlin et al. 2019 (1810.04805), sec. 3.1 and A.1. Every draw is made by a generator that is given
in: another epoch hides other pieces.
b: texts   t: positions   o: ids that stand for text
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

RATE = 0.15  # of the pieces have to be told
HIDDEN, RANDOM = 0.8, 0.1  # of those are hidden, or replaced; the rest stays as it is
FOLLOWS = 0.5  # of the pairs are of sentences that follow each other
SHORT = 0.1  # of the pairs are made for a shorter length, as in the authors' code


class Masked(NamedTuple):
    """What the model reads, and which of the pieces it has to tell."""

    ids: Int[Tensor, "b t"]
    chosen: Bool[Tensor, "b t"]


def masked(
    ids: Int[Tensor, "b t"],
    free: Bool[Tensor, "b t"],
    *,
    mask: int,
    ordinary: Int[Tensor, " o"],
    generator: Generator,
    rate: float = RATE,
    begins: Bool[Tensor, "b t"] | None = None,
) -> Masked:
    """A share `rate` of the `free` pieces is chosen; of 10 of them, 8 become `mask` and 1 any of
    the `ordinary` ids, its own too.

    With `begins`, which says where a word begins, all pieces of a word are chosen together
    (whole-word masking, of the authors' later models).
    """
    # differs: the authors choose a fixed number in each text; here each piece is drawn by itself,
    # so that the share is the same for texts of every length
    if not 0 < rate < 1:
        raise ValueError(f"rate must be between 0 and 1, not {rate}")
    draws = torch.rand(ids.shape, generator=generator)
    if begins is not None:
        place = torch.arange(ids.shape[1]).expand_as(ids)
        draws = draws.gather(1, place.where(begins | ~free, 0).cummax(1).values)
    chosen = free & (draws < rate)
    kind = torch.rand(ids.shape, generator=generator)
    drawn = ordinary[torch.randint(len(ordinary), ids.shape, generator=generator)]
    read = torch.where(chosen & (kind < HIDDEN), mask, ids)
    other = chosen & (kind >= HIDDEN) & (kind < HIDDEN + RANDOM)
    return Masked(torch.where(other, drawn, read), chosen)


def free_of(
    ids: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"], specials: Sequence[int]
) -> Bool[Tensor, "b t"]:
    """Pieces that may be chosen: neither padding nor special."""
    return valid & ~torch.isin(ids, torch.tensor(specials, dtype=ids.dtype))


def ordinary_of(size: int, specials: Sequence[int]) -> Int[Tensor, " o"]:
    """All ids of a vocabulary that stand for text."""
    left = torch.tensor(sorted({*range(size)}.difference(specials)), dtype=torch.int64)
    if not len(left):
        raise ValueError(f"size must leave an id that is not special, and {size} does not")
    return left


class Sentences(NamedTuple):
    """Two stretches of text, and whether the second follows the first in its document."""

    first: list[int]
    second: list[int]
    follows: bool


def sentence_pairs(
    documents: Sequence[Sequence[Sequence[int]]],
    length: int,
    generator: Generator,
    *,
    short: float = SHORT,
) -> Iterator[Sentences]:
    """Pairs from documents of sentences of ids, at most `length` ids a pair, in their order.

    Sentences are taken until the length is reached and cut in two between some of them; in half of
    the pairs the second part is taken from another document instead, and the sentences that it
    takes the place of begin the next pair. A share `short` is filled to a length drawn from 2 on. A
    last sentence that is left over has nothing to be followed by, and is only drawn as second part.
    """
    if length < 2:
        raise ValueError(f"length must be at least 2, one id for each part, not {length}")
    real = [[s for s in document if len(s)] for document in documents]
    real = [document for document in real if document]
    if len(real) < 2:
        raise ValueError(f"documents must be at least 2 that are not empty, not {len(real)}")
    for number, document in enumerate(real):
        start = 0
        while len(document) - start >= 2:
            goal = length
            if chance(generator) < short:
                goal = 2 + below(length - 1, generator)
            end = max(start + 2, filled(document, start, goal))
            cut = start + 1 + below(end - start - 1, generator)
            first = list(chain.from_iterable(document[start:cut]))
            follows = chance(generator) < FOLLOWS
            if follows:
                second, start = list(chain.from_iterable(document[cut:end])), end
            else:
                second, start = elsewhere(real, number, goal - len(first), generator), cut
            yield Sentences(*truncated(first, second, length, generator), follows)


def elsewhere(
    documents: Sequence[Sequence[Sequence[int]]], here: int, goal: int, generator: Generator
) -> list[int]:
    """Sentences of another document, from a random one on, until there are `goal` ids."""
    number = below(len(documents) - 1, generator)
    document = documents[number + (number >= here)]
    start = below(len(document), generator)
    return list(chain.from_iterable(document[start : filled(document, start, goal)]))


def filled(document: Sequence[Sequence[int]], start: int, goal: int) -> int:
    """The end of the sentences from `start` on, at least one, that have `goal` ids together."""
    end, total = start + 1, len(document[start])
    while end < len(document) and total < goal:
        total += len(document[end])
        end += 1
    return end


def truncated(
    first: Sequence[int], second: Sequence[int], length: int, generator: Generator
) -> tuple[list[int], list[int]]:
    """The longer one loses an id at one of its ends, by chance, until both have `length` ids."""
    parts = (list(first), list(second))
    for _ in range(len(first) + len(second) - length):
        longer = parts[0] if len(parts[0]) > len(parts[1]) else parts[1]
        longer.pop(0 if chance(generator) < 0.5 else -1)
    return parts


def joined(pair: Sentences, start: int, end: int) -> tuple[list[int], list[int]]:
    """[CLS] first [SEP] second [SEP], and for each id whether it is of the first part (0) or of the
    second (1)."""
    ids = [start, *pair.first, end, *pair.second, end]
    return ids, [0] * (len(pair.first) + 2) + [1] * (len(pair.second) + 1)


def below(end: int, generator: Generator) -> int:
    return int(torch.randint(end, (), generator=generator))


def chance(generator: Generator) -> float:
    return float(torch.rand((), generator=generator))
