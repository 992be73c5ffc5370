"""Batches of about equal work, in an order that a seed fixes and that can be taken up anywhere.

Examples come shuffled, a window of them is sorted by length, cut into batches by a budget, and the
batches of the window are shuffled again: little padding, and still a random order.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from regard.batch.pair import Batch, Pair, collate


class Stored:
    """Examples in memory: each epoch is a new permutation of all of them."""

    def __init__(self, pairs: Sequence[Pair], seed: int = 0):
        if not pairs:
            raise ValueError("pairs are missing: there is nothing to train on")
        self.pairs, self.seed = pairs, seed

    def stream(self, epoch: int) -> Iterator[Pair]:
        order = list(range(len(self.pairs)))
        random.Random(f"{self.seed} {epoch}").shuffle(order)
        return (self.pairs[i] for i in order)


class Streamed:
    """Examples that do not fit: read anew each epoch, shuffled within a buffer of bounded size."""

    def __init__(self, read: Callable[[], Iterable[Pair]], seed: int = 0, buffer: int = 10_000):
        if buffer < 1:
            raise ValueError(f"buffer must be positive, not {buffer}")
        self.read, self.seed, self.buffer = read, seed, buffer

    def stream(self, epoch: int) -> Iterator[Pair]:
        draw, held = random.Random(f"{self.seed} {epoch}"), list[Pair]()
        for pair in self.read():
            if len(held) < self.buffer:
                held.append(pair)
                continue
            place = draw.randrange(self.buffer)
            held[place], pair = pair, held[place]
            yield pair
        draw.shuffle(held)
        yield from held


class Batches:
    """An endless iterator of batches, epoch after epoch, whose `state` is two numbers.

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
        self.epoch = self.given = 0  # given: batches of this epoch that all ranks have taken
        self.groups: Iterator[list[Pair]] | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        turn = self.next_turn()
        while turn is None:
            if self.given == 0:
                raise ValueError(f"an epoch has fewer batches than ranks ({self.ranks})")
            self.epoch, self.given, self.groups = self.epoch + 1, 0, None
            turn = self.next_turn()
        return collate(turn[self.rank])

    def next_turn(self) -> list[list[Pair]] | None:
        """One batch for each rank; None when the epoch has not that many any more."""
        if self.groups is None:
            self.groups = self.of_epoch()
            for _ in range(self.given * self.ranks):
                next(self.groups)
        turn = list(islice(self.groups, self.ranks))
        if len(turn) < self.ranks:
            return None
        self.given += 1
        return turn

    def of_epoch(self) -> Iterator[list[Pair]]:
        draw = random.Random(f"{self.seed} {self.epoch} batches")
        stream = self.examples.stream(self.epoch)
        while window := list(islice(stream, self.window)):
            window.sort(key=lambda pair: (len(pair.target), len(pair.source)))
            groups = list(cut(window, self.tokens, self.sentences))
            draw.shuffle(groups)
            yield from groups

    def state(self) -> dict[str, int]:
        return {"epoch": self.epoch, "given": self.given}

    def restore(self, state: dict[str, int]) -> None:
        self.epoch, self.given, self.groups = state["epoch"], state["given"], None


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


def in_order(pairs: Sequence[Pair], *, tokens: int) -> Iterator[Batch]:
    """Every pair once, sorted by length: for scoring and predicting. `Batch.numbers` says which."""
    ordered = sorted(pairs, key=lambda pair: (len(pair.source), len(pair.target)))
    return (collate(group) for group in cut(ordered, tokens, None))
