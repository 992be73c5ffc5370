"""Batches of about equal work, in an order that a seed fixes and that can be taken up anywhere.

An example is anything with a `source` and a `target` that have lengths, and an `index`.
Examples come shuffled, a window of them is sorted by length, cut into batches by a budget, and the
batches of the window are shuffled again: little padding, and still a random order.
"""

import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from torch import Tensor

from regard.batching.example import Example, collate, with_index
from regard.batching.packed import PackedExamples
from regard.data.corpus import Record
from regard.data.mix import shuffled_stream


class SortWindow(NamedTuple):
    """Examples that are sorted by length together, and where they begin in their epoch."""

    start: int
    examples: list[Any]


class EpochPosition(NamedTuple):
    """In an epoch: the start of the window, and how many batches of it were given."""

    window: int = 0
    given: int = 0


class InMemoryExamples:
    """Examples in memory: each epoch is a new permutation of all of them."""

    def __init__(self, examples: Sequence[Any], seed: int = 0):
        if not examples:
            raise ValueError("pairs are missing: there is nothing to train on")
        self.examples, self.seed = examples, seed

    def windows(self, epoch: int, size: int, start: int = 0) -> Iterator[SortWindow]:
        order = array("q", range(len(self.examples)))
        random.Random(f"{self.seed} {epoch}").shuffle(order)
        for position in range(start, len(order), size):
            yield SortWindow(
                position, [self.examples[i] for i in order[position : position + size]]
            )


class StreamedExamples:
    """Examples that do not fit: read anew each epoch, shuffled within a buffer of bounded size.

    It is records that are shuffled, and `pairs` makes ids of them afterwards: to go on in the
    middle of an epoch they are read up to there again, but not cut into tokens.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Record]],
        to_examples: Callable[[Iterable[Record]], Iterable[Example]],
        seed: int = 0,
        buffer: int = 10_000,
        *,
        packed: bool = True,
    ):
        if buffer < 1:
            raise ValueError(f"buffer must be positive, not {buffer}")
        self.read, self.to_examples, self.seed, self.buffer = read, to_examples, seed, buffer
        self.packed = packed  # whether examples are ids and nothing else

    def windows(self, epoch: int, size: int, start: int = 0) -> Iterator[SortWindow]:
        records = shuffled_stream(enumerate(self.read()), self.buffer, f"{self.seed} {epoch}")
        for _ in islice(records, start):
            pass
        while chunk := list(islice(records, size)):
            examples = self.to_examples(record for _, record in chunk)
            held = PackedExamples(examples) if self.packed else list(examples)
            yield SortWindow(start, [with_index(one, chunk[one.index][0]) for one in held])
            start += len(chunk)


class Batches:
    """An endless iterator of batches, epoch after epoch, whose `state` is a few numbers.

    The budget is either `tokens` (of the longer side, padding included) or `sentences` a batch. Of
    several `ranks` that share the work, each takes its own of the batches.
    """

    def __init__(
        self,
        examples: InMemoryExamples | StreamedExamples,
        *,
        tokens_per_batch: int | None = None,
        examples_per_batch: int | None = None,
        seed: int = 0,
        window_size: int = 20_000,
        rank: int = 0,
        ranks: int = 1,
        collate: Callable[[list[Any]], Any] = collate,
    ):
        if (tokens_per_batch is None) == (examples_per_batch is None):
            raise ValueError(
                "the budget must be either tokens_per_batch or examples_per_batch, and not both"
            )
        for name, number in (
            ("tokens_per_batch", tokens_per_batch),
            ("examples_per_batch", examples_per_batch),
            ("window_size", window_size),
        ):
            if number is not None and number < 1:
                raise ValueError(f"{name} must be positive, not {number}")
        if not 0 <= rank < ranks:
            raise ValueError(f"rank must be from 0 to {ranks - 1}, not {rank}")
        self.examples, self.tokens_per_batch, self.examples_per_batch = (
            examples,
            tokens_per_batch,
            examples_per_batch,
        )
        self.seed, self.window_size, self.rank, self.ranks = seed, window_size, rank, ranks
        self.collate = collate
        self.carried: dict[str, Tensor] = {}  # nothing: a batch does not go on with the one before
        self.begin_epoch(0)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batches = self.next_round()
        while batches is None:
            if self.is_new_epoch:
                raise ValueError(f"an epoch has fewer batches than ranks ({self.ranks})")
            self.begin_epoch(self.epoch + 1)
            batches = self.next_round()
        return self.collate(batches[self.rank])

    def next_round(self) -> list[list[Any]] | None:
        """One batch for each rank; None when the epoch has not that many any more."""
        if self.remaining_batches is None:
            self.remaining_batches = self.epoch_batches()
        batches = list(islice(self.remaining_batches, self.ranks))
        if len(batches) < self.ranks:
            return None
        self.is_new_epoch = False
        return batches

    def epoch_batches(self) -> Iterator[list[Any]]:
        """The batches from our place in the epoch on, which goes with them."""
        rng = random.Random(f"{self.seed} {self.epoch} batches")
        for count in self.batches_per_window:  # draws what was drawn for them
            rng.shuffle([0] * count)
        batches_to_skip = self.position.given
        for start, examples in self.examples.windows(
            self.epoch, self.window_size, self.position.window
        ):
            examples.sort(key=lambda example: (len(example.target), len(example.source)))
            batches = list(
                split_into_batches(examples, self.tokens_per_batch, self.examples_per_batch)
            )
            rng.shuffle(batches)
            for batches_done, batch in enumerate(batches[batches_to_skip:], batches_to_skip + 1):
                self.position = EpochPosition(start, batches_done)
                yield batch
            batches_to_skip = 0
            self.batches_per_window.append(len(batches))

    def begin_epoch(self, epoch: int) -> None:
        self.epoch, self.position = epoch, EpochPosition()
        self.batches_per_window: list[
            int
        ] = []  # how many batches each earlier window of the epoch had
        self.remaining_batches: Iterator[list[Any]] | None = None
        self.is_new_epoch = True  # nothing of this epoch was given yet

    def state_dict(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            **self.position._asdict(),
            "before": list(self.batches_per_window),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.begin_epoch(state["epoch"])
        self.position, self.batches_per_window = (
            EpochPosition(state["window"], state["given"]),
            list(state["before"]),
        )
        self.is_new_epoch = self.position == EpochPosition()


def split_into_batches(
    examples: Iterable[Any], tokens_per_batch: int | None, examples_per_batch: int | None
) -> Iterator[list[Any]]:
    """Runs of pairs within the budget; a pair over the budget is a batch of its own."""
    batch, max_length = list[Any](), 0
    for example in examples:
        new_max_length = max(max_length, len(example.source) + 1, len(example.target) + 1)
        is_full = len(batch) == examples_per_batch or (
            tokens_per_batch is not None and new_max_length * (len(batch) + 1) > tokens_per_batch
        )
        if batch and is_full:
            yield batch
            batch, new_max_length = [], max(len(example.source), len(example.target)) + 1
        batch.append(example)
        max_length = new_max_length
    if batch:
        yield batch


def iterate_by_length(
    examples: Sequence[Any],
    *,
    tokens_per_batch: int,
    examples_per_batch: int | None = None,
    collate: Callable[[list[Any]], Any] = collate,
) -> Iterator[Any]:
    """Every pair once, sorted by length: for scoring and predicting. `Batch.numbers` says which."""
    ordered = sorted(examples, key=lambda example: (len(example.source), len(example.target)))
    return (
        collate(batch)
        for batch in split_into_batches(ordered, tokens_per_batch, examples_per_batch)
    )
