"""Word alignments from the cross-attention of a translation model: who looked at whom.

A pair of texts is read teacher-forced with somebody looking. Which of the weights become links is a
`Way`; the best one is found on pairs that people have aligned, or by how well two directions agree.

b: batch   l: layers   h: heads   t: target tokens   s: source tokens   m, n: their words
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from torch import Tensor

from regard.batch.batches import in_order
from regard.batch.pair import Pair
from regard.metric.alignment import Agreement, agreement, best_links, flipped, word_weights
from regard.metric.links import Gold, Links
from regard.tasks.translate import AT_ONCE, ROOM, Translator

Texts = Sequence[tuple[str, str]]  # source and target
Words = Float[np.ndarray, "m n"]  # how much each target word looked at each source word
Find = Callable[[Words], Links]  # `best_links`, or `strong_links` with a threshold
Told = Callable[[int], None]


class Way(NamedTuple):
    """Which weights are taken: of a layer and a head, counted from 0, or None for the mean of all.

    `shift` 0 takes those of the position that predicts a target token; 1 those of the next, which
    reads it: a transformer knows only then what is to be aligned (Chen et al. 2020, 2004.14837).
    """

    layer: int | None
    head: int | None = None
    shift: int = 0

    def of(self, weights: Float[Tensor, "l b h t s"]) -> Float[Tensor, "b t s"]:
        if self.layer is not None:
            weights = weights[self.layer : self.layer + 1]
        if self.head is not None:
            weights = weights[:, :, self.head : self.head + 1]
        return weights.mean((0, 2))


class Choice(NamedTuple):
    """A way for each of the directions that were tried, and how well it did."""

    ways: tuple[Way, ...]
    agreement: Agreement


class Aligner:
    """Links by one model, always as (source word, target word) of the pairs that are given.

    `turned` is for a model that translates their targets into their sources.
    """

    def __init__(self, task: Translator, *, turned: bool = False, find: Find = best_links):
        self.task, self.turned, self.find = task, turned, find
        names = task.cross
        self.layers = len(names)
        self.heads: int = getattr(task.model.get_submodule(names[0]), "heads", 1)

    def default(self) -> Way:
        """The mean of the heads in the last decoder layer but one (Garg et al. 2019)."""
        return Way(guided_layer(self.layers))

    def ways(self, *, heads: bool = True) -> list[Way]:
        """All that may be tried, the default first; without `heads`, means over them only."""
        found = [self.default()]
        for shift in (0, 1):
            for layer in range(self.layers):
                found.append(Way(layer, shift=shift))
                if heads and self.heads > 1:
                    found += [Way(layer, head, shift) for head in range(self.heads)]
            if self.layers > 1:
                found.append(Way(None, shift=shift))
        return list(dict.fromkeys(found))

    def check(self, way: Way) -> Way:
        for name, number, count in (
            ("layer", way.layer, self.layers),
            ("head", way.head, self.heads),
        ):
            if number is not None and not 0 <= number < count:
                last = f"0 to {count - 1}" if count > 1 else "0 only"
                raise ValueError(f"{name} must be {last}, not {number}")
        if way.shift not in (0, 1):
            raise ValueError(f"shift must be 0 or 1, not {way.shift}")
        return way

    def links(
        self, texts: Texts, ways: Sequence[Way], *, room: int = ROOM, told: Told | None = None
    ) -> list[list[Links]]:
        """For each way the links of each pair; `told` hears how many pairs are done each time."""
        found: list[list[Links]] = [[frozenset()] * len(texts) for _ in ways]
        for number, tables in self.tables(texts, ways, room=room):
            for links, table in zip(found, tables, strict=True):
                links[number] = flipped(self.find(table)) if self.turned else self.find(table)
            if told is not None:
                told(1)
        return found

    def tables(
        self, texts: Texts, ways: Sequence[Way], *, room: int = ROOM
    ) -> Iterator[tuple[int, list[Words]]]:
        """The number of each pair, in any order, and its weights between words for each way.

        The ends of source and target are no words. Rows are of the words that the model writes.
        """
        ways = [self.check(way) for way in ways]
        for first in range(0, len(texts), AT_ONCE):
            some = texts[first : first + AT_ONCE]
            sources = self.task.source.encode_batch([text[self.turned] for text in some])
            targets = self.task.target.encode_batch([text[not self.turned] for text in some])
            both = enumerate(zip(sources, targets, strict=True))
            pairs = [Pair(number, source.ids, target.ids) for number, (source, target) in both]
            for batch in in_order(pairs, tokens=room):
                weights = self.task.weights(batch)
                taken = [(way.of(weights).numpy(), way.shift) for way in ways]
                for row, number in enumerate(batch.numbers.tolist()):
                    target, source = targets[number].words, sources[number].words
                    own = [table[row, shift:] for table, shift in taken]
                    yield first + number, [between_words(one, target, source) for one in own]


def between_words(
    weights: Float[np.ndarray, "t s"], target: Sequence[int | None], source: Sequence[int | None]
) -> Words:
    """Of these tokens' words; what comes behind them, the ends and padding, is cut off."""
    return word_weights(weights[: len(target), : len(source)], target, source)


def guided_layer(layers: int) -> int:
    """The last but one, or the only one: which aligns best (Garg et al. 2019), and is guided."""
    return max(layers - 2, 0)


def by_gold(
    aligner: Aligner, texts: Texts, gold: Sequence[Gold], told: Told | None = None
) -> list[Choice]:
    """Every way, the one with the lowest alignment error rate first."""
    ways = aligner.ways()
    found = zip(ways, aligner.links(texts, ways, told=told), strict=True)
    return ranked(Choice((way,), agreement(links, gold)) for way, links in found)


def by_agreement(
    one: Aligner, other: Aligner, texts: Texts, told: Told | None = None
) -> list[Choice]:
    """Ways of two directions, those that agree best first: for want of gold (Chen et al. 2020).

    Heads are not tried one by one: every way of the one meets every way of the other.
    """
    ways = one.ways(heads=False), other.ways(heads=False)
    there, back = (a.links(texts, w, told=told) for a, w in zip((one, other), ways, strict=True))
    gold = [[Gold(links, links) for links in found] for found in back]
    return ranked(
        Choice((way, again), agreement(links, beside))
        for way, links in zip(ways[0], there, strict=True)
        for again, beside in zip(ways[1], gold, strict=True)
    )


def ranked(choices: Iterator[Choice]) -> list[Choice]:
    """The lowest error rate first; but two that link nothing do not agree, they are silent."""

    def badness(choice: Choice) -> tuple[bool, float]:
        return not choice.agreement.guessed_possible, choice.agreement.aer

    return sorted(choices, key=badness)
