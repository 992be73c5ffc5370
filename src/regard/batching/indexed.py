"""Batches that are built from their number, in any quantity."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from torch import Tensor

from regard.files import JsonObject

BatchT = TypeVar("BatchT")


class IndexedBatches(Generic[BatchT]):
    """An endless iterator whose position is a number: `build_batch(n)` is the n-th batch, from 0.

    The epoch is always 0, because there is no last batch.
    """

    epoch, batches_per_epoch = 0, None

    def __init__(self, build_batch: Callable[[int], BatchT]):
        self.build_batch, self.batches_done = build_batch, 0
        self.carried: dict[str, Tensor] = {}  # empty: no batch continues the one before it

    def __iter__(self) -> Iterator[BatchT]:
        return self

    def __next__(self) -> BatchT:
        batch = self.build_batch(self.batches_done)
        self.batches_done += 1
        return batch

    def state_dict(self) -> JsonObject:
        return {"given": self.batches_done}

    def load_state_dict(self, state: JsonObject) -> None:
        self.batches_done = state["given"]
