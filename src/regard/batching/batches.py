"""Batches of about equal size, in an order that a seed fixes and that can be resumed anywhere.

The examples of an epoch are shuffled. A window of them is sorted by length and cut into batches
within a budget. The batches of the window are shuffled, so that there is little padding and the
order is still random.
"""

import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from regard.batching.device import CPU, move_to_device
from regard.batching.example import SizedT, with_index
from regard.batching.packed import PackedExamples
from regard.batching.shares import balanced_shares, check_rank
from regard.data.corpus import Record
from regard.data.mix import shuffled_stream
from regard.errors import InputError
from regard.files import JsonObject

BatchT = TypeVar("BatchT")


@dataclass(frozen=True)
class SortWindow(Generic[SizedT]):
    """Examples that are sorted by length together, and the position of the first in its epoch."""

    start: int
    examples: list[SizedT]


class EpochPosition(NamedTuple):
    """A position in an epoch: the start of a window, and the number of its batches so far."""

    window: int = 0
    given: int = 0


class InMemoryExamples(Generic[SizedT]):
    """Examples in memory: each epoch is a new permutation of all of them."""

    def __init__(self, examples: Sequence[SizedT], seed: int = 0):
        if not examples:
            raise InputError("examples are missing: there is nothing to train on")
        self.examples, self.seed = examples, seed

    def windows(self, epoch: int, size: int, start: int = 0) -> Iterator[SortWindow[SizedT]]:
        """Yield windows of `size` examples, from the `start`-th example of the epoch on."""
        order = array("q", range(len(self.examples)))
        random.Random(f"{self.seed} {epoch}").shuffle(order)
        for position in range(start, len(order), size):
            yield SortWindow(
                position, [self.examples[i] for i in order[position : position + size]]
            )


class StreamedExamples(Generic[SizedT]):
    """Examples that do not fit in memory: read in each epoch, shuffled within a buffer.

    Records are shuffled, and `to_examples` converts them afterwards. To resume in the middle of an
    epoch, the records before that position are read again, but not tokenized.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Record]],
        to_examples: Callable[[Iterable[Record]], Iterable[SizedT]],
        seed: int = 0,
        buffer: int = 10_000,
        *,
        packed: bool = True,
    ):
        if buffer < 1:
            raise InputError(f"buffer must be positive, not {buffer}")
        self.read, self.to_examples, self.seed, self.buffer = read, to_examples, seed, buffer
        self.packed = packed  # whether examples hold ids and numbers only

    def windows(self, epoch: int, size: int, start: int = 0) -> Iterator[SortWindow[SizedT]]:
        """Yield the examples of `size` records each, from the `start`-th record on."""
        records = shuffled_stream(enumerate(self.read()), self.buffer, f"{self.seed} {epoch}")
        for _ in islice(records, start):
            pass
        while chunk := list(islice(records, size)):
            examples = self.to_examples(record for _, record in chunk)
            stored = PackedExamples(examples) if self.packed else list(examples)
            indexed = [with_index(example, chunk[example.index][0]) for example in stored]
            yield SortWindow(start, indexed)
            start += len(chunk)


class Batches(Generic[SizedT, BatchT]):
    """An endless iterator of batches, epoch after epoch, whose state is a few numbers.

    The budget of a batch is a number of tokens (of its longer side, with padding) or of examples.
    Of several ranks that share the work, each takes a part of every batch, of about equal length.
    """

    def __init__(
        self,
        examples: InMemoryExamples[SizedT] | StreamedExamples[SizedT],
        *,
        collate: Callable[[list[SizedT]], BatchT],
        tokens_per_batch: int | None = None,
        examples_per_batch: int | None = None,
        seed: int = 0,
        window_size: int = 20_000,
    ):
        if (tokens_per_batch is None) == (examples_per_batch is None):
            raise InputError(
                "the budget must be either tokens_per_batch or examples_per_batch, and not both"
            )
        for name, number in (
            ("tokens_per_batch", tokens_per_batch),
            ("examples_per_batch", examples_per_batch),
            ("window_size", window_size),
        ):
            if number is not None and number < 1:
                raise InputError(f"{name} must be positive, not {number}")
        self.examples, self.collate, self.seed = examples, collate, seed
        self.tokens_per_batch, self.examples_per_batch = tokens_per_batch, examples_per_batch
        self.window_size = window_size
        self.rank, self.ranks, self.has_share = 0, 1, True
        self.carried: dict[str, Tensor] = {}  # empty: no batch continues the one before it
        self.begin_epoch(0)

    def __iter__(self) -> Iterator[BatchT]:
        return self

    def take_share(self, rank: int, ranks: int) -> None:
        check_rank(rank, ranks)
        self.rank, self.ranks = rank, ranks

    def __next__(self) -> BatchT:
        examples = self.next_examples()
        if self.ranks > 1:
            sizes = [sum(example.lengths) for example in examples]
            positions = balanced_shares(sizes, self.ranks)[self.rank]
            self.has_share = bool(positions)
            examples = [examples[position] for position in positions] or examples[:1]
        return self.collate(examples)

    def next_examples(self) -> list[SizedT]:
        """Return the examples of the next batch, of all ranks."""
        while True:
            if self.remaining_batches is None:
                self.remaining_batches = self.epoch_batches()
            examples = next(self.remaining_batches, None)
            if examples is not None:
                self.is_new_epoch = False
                return examples
            if self.is_new_epoch:
                raise InputError("an epoch has no example; is the data empty?")
            self.begin_epoch(self.epoch + 1)

    def epoch_batches(self) -> Iterator[list[SizedT]]:
        """Yield the batches from the current position in the epoch on, and advance it."""
        rng = random.Random(f"{self.seed} {self.epoch} batches")
        for count in self.batches_per_window:  # repeat the draws of earlier windows
            rng.shuffle([0] * count)
        batches_to_skip = self.position.given
        for window in self.examples.windows(self.epoch, self.window_size, self.position.window):
            examples = sorted(window.examples, key=lambda example: example.lengths[::-1])
            batches = list(
                split_into_batches(examples, self.tokens_per_batch, self.examples_per_batch)
            )
            rng.shuffle(batches)
            for batches_done, batch in enumerate(batches[batches_to_skip:], batches_to_skip + 1):
                self.position = EpochPosition(window.start, batches_done)
                yield batch
            batches_to_skip = 0
            self.batches_per_window.append(len(batches))

    @property
    def batches_per_epoch(self) -> int | None:
        """Return the batches of the first epoch, if its examples are in memory."""
        if not isinstance(self.examples, InMemoryExamples):
            return None
        count = 0
        for window in self.examples.windows(0, self.window_size):
            examples = sorted(window.examples, key=lambda example: example.lengths[::-1])
            batches = split_into_batches(examples, self.tokens_per_batch, self.examples_per_batch)
            count += sum(1 for _ in batches)
        return max(1, count)

    def begin_epoch(self, epoch: int) -> None:
        self.epoch, self.position = epoch, EpochPosition()
        self.batches_per_window: list[int] = []  # of the windows that are done
        self.remaining_batches: Iterator[list[SizedT]] | None = None
        self.is_new_epoch = True  # no batch of this epoch was returned

    def state_dict(self) -> JsonObject:
        return {
            "epoch": self.epoch,
            **self.position._asdict(),
            "before": list(self.batches_per_window),
        }

    def load_state_dict(self, state: JsonObject) -> None:
        self.begin_epoch(state["epoch"])
        self.position = EpochPosition(state["window"], state["given"])
        self.batches_per_window = list(state["before"])
        self.is_new_epoch = self.position == EpochPosition()


def split_into_batches(
    examples: Iterable[SizedT], tokens_per_batch: int | None, examples_per_batch: int | None
) -> Iterator[list[SizedT]]:
    """Yield runs of examples within the budget; an example over the budget is a batch alone."""
    batch, max_length = list[SizedT](), 0
    for example in examples:
        length = max(example.lengths) + 1  # START or END
        new_max_length = max(max_length, length)
        is_full = len(batch) == examples_per_batch or (
            tokens_per_batch is not None and new_max_length * (len(batch) + 1) > tokens_per_batch
        )
        if batch and is_full:
            yield batch
            batch, new_max_length = [], length
        batch.append(example)
        max_length = new_max_length
    if batch:
        yield batch


def iterate_by_length(
    examples: Sequence[SizedT],
    *,
    collate: Callable[[list[SizedT]], BatchT],
    tokens_per_batch: int,
    examples_per_batch: int | None = None,
    device: torch.device = CPU,
) -> Iterator[BatchT]:
    """Yield every example once, in batches sorted by length, for evaluation and prediction."""
    ordered = sorted(examples, key=lambda example: example.lengths)
    return (
        move_to_device(collate(batch), device)
        for batch in split_into_batches(ordered, tokens_per_batch, examples_per_batch)
    )
