"""Batches of about equal work, in an order that a seed fixes and that can be taken up anywhere.

Examples come shuffled, a window of them is sorted by length, cut into batches by a budget, and the
batches of the window are shuffled again: little padding, and still a random order.
"""

import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from torch import Tensor

from regard.batch.packed import Packed
from regard.batch.pair import Pair, collate
from regard.corpora.corpus import Record
from regard.corpora.mix import shuffled


class Window(NamedTuple):
    """Examples that are sorted by length together, and where they begin in their epoch."""

    start: int
    pairs: list[Pair]


class Place(NamedTuple):
    """In an epoch: the start of the window, and how many batches of it were given."""

    window: int = 0
    given: int = 0


class Stored:
    """Examples in memory: each epoch is a new permutation of all of them."""

    def __init__(self, pairs: Sequence[Pair], seed: int = 0):
        if not pairs:
            raise ValueError("pairs are missing: there is nothing to train on")
        self.pairs, self.seed = pairs, seed

    def windows(self, epoch: int, size: int, start: int = 0) -> Iterator[Window]:
        order = array("q", range(len(self.pairs)))
        random.Random(f"{self.seed} {epoch}").shuffle(order)
        for place in range(start, len(order), size):
            yield Window(place, [self.pairs[i] for i in order[place : place + size]])


class Streamed:
    """Examples that do not fit: read anew each epoch, shuffled within a buffer of bounded size.

    It is records that are shuffled, and `pairs` makes ids of them afterwards: to go on in the
    middle of an epoch they are read up to there again, but not cut into tokens.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Record]],
        pairs: Callable[[Iterable[Record]], Iterable[Pair]],
        seed: int = 0,
        buffer: int = 10_000,
    ):
        if buffer < 1:
            raise ValueError(f"buffer must be positive, not {buffer}")
        self.read, self.pairs, self.seed, self.buffer = read, pairs, seed, buffer

    def windows(self, epoch: int, size: int, start: int = 0) -> Iterator[Window]:
        records = shuffled(enumerate(self.read()), self.buffer, f"{self.seed} {epoch}")
        for _ in islice(records, start):
            pass
        while some := list(islice(records, size)):
            pairs = self.pairs(record for _, record in some)
            yield Window(start, [p._replace(number=some[p.number][0]) for p in Packed(pairs)])
            start += len(some)


class Batches:
    """An endless iterator of batches, epoch after epoch, whose `state` is a few numbers.

    The budget is either `tokens` (of the longer side, padding included) or `sentences` a batch. Of
    several `ranks` that share the work, each takes its own of the batches.
    """

    def __init__(
        self,
        examples: Stored | Streamed,
        *,
        tokens: int | None = None,
        sentences: int | None = None,
        seed: int = 0,
        window: int = 20_000,
        rank: int = 0,
        ranks: int = 1,
        collate: Callable[[list[Pair]], Any] = collate,
    ):
        if (tokens is None) == (sentences is None):
            raise ValueError("the budget must be either tokens or sentences, and not both")
        for name, number in (("tokens", tokens), ("sentences", sentences), ("window", window)):
            if number is not None and number < 1:
                raise ValueError(f"{name} must be positive, not {number}")
        if not 0 <= rank < ranks:
            raise ValueError(f"rank must be from 0 to {ranks - 1}, not {rank}")
        self.examples, self.tokens, self.sentences = examples, tokens, sentences
        self.seed, self.window, self.rank, self.ranks = seed, window, rank, ranks
        self.collate = collate
        self.carried: dict[str, Tensor] = {}  # nothing: a batch does not go on with the one before
        self.begin(0)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        turn = self.next_turn()
        while turn is None:
            if self.fresh:
                raise ValueError(f"an epoch has fewer batches than ranks ({self.ranks})")
            self.begin(self.epoch + 1)
            turn = self.next_turn()
        return self.collate(turn[self.rank])

    def next_turn(self) -> list[list[Pair]] | None:
        """One batch for each rank; None when the epoch has not that many any more."""
        if self.groups is None:
            self.groups = self.of_epoch()
        turn = list(islice(self.groups, self.ranks))
        if len(turn) < self.ranks:
            return None
        self.fresh = False
        return turn

    def of_epoch(self) -> Iterator[list[Pair]]:
        """The batches from our place in the epoch on, which goes with them."""
        draw = random.Random(f"{self.seed} {self.epoch} batches")
        for count in self.before:  # draws what was drawn for them
            draw.shuffle([0] * count)
        skipped = self.place.given
        for start, pairs in self.examples.windows(self.epoch, self.window, self.place.window):
            pairs.sort(key=lambda pair: (len(pair.target), len(pair.source)))
            groups = list(cut(pairs, self.tokens, self.sentences))
            draw.shuffle(groups)
            for number, group in enumerate(groups[skipped:], skipped + 1):
                self.place = Place(start, number)
                yield group
            skipped = 0
            self.before.append(len(groups))

    def begin(self, epoch: int) -> None:
        self.epoch, self.place = epoch, Place()
        self.before: list[int] = []  # how many batches each earlier window of the epoch had
        self.groups: Iterator[list[Pair]] | None = None
        self.fresh = True  # nothing of this epoch was given yet

    def state(self) -> dict[str, Any]:
        return {"epoch": self.epoch, **self.place._asdict(), "before": list(self.before)}

    def restore(self, state: dict[str, Any]) -> None:
        self.begin(state["epoch"])
        self.place, self.before = Place(state["window"], state["given"]), list(state["before"])
        self.fresh = self.place == Place()


def cut(pairs: Iterable[Pair], tokens: int | None, sentences: int | None) -> Iterator[list[Pair]]:
    """Runs of pairs within the budget; a pair over the budget is a batch of its own."""
    group, longest = list[Pair](), 0
    for pair in pairs:
        longer = max(longest, len(pair.source) + 1, len(pair.target) + 1)
        full = len(group) == sentences or (
            tokens is not None and longer * (len(group) + 1) > tokens
        )
        if group and full:
            yield group
            group, longer = [], max(len(pair.source), len(pair.target)) + 1
        group.append(pair)
        longest = longer
    if group:
        yield group


def in_order(
    pairs: Sequence[Pair],
    *,
    tokens: int,
    sentences: int | None = None,
    collate: Callable[[list[Pair]], Any] = collate,
) -> Iterator[Any]:
    """Every pair once, sorted by length: for scoring and predicting. `Batch.numbers` says which."""
    ordered = sorted(pairs, key=lambda pair: (len(pair.source), len(pair.target)))
    return (collate(group) for group in cut(ordered, tokens, sentences))
