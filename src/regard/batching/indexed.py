"""Batches that are made by their number, as many as are wanted."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor


class IndexedBatches:
    """An endless iterator whose place is a number: `make(n)` is the n-th batch, from 0.

    An epoch never ends: what is made has no last one.
    """

    epoch = 0

    def __init__(self, build_batch: Callable[[int], Any]):
        self.build_batch, self.batches_done = build_batch, 0
        self.carried: dict[str, Tensor] = {}  # nothing: a batch does not go on with the one before

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = self.build_batch(self.batches_done)
        self.batches_done += 1
        return batch

    def state_dict(self) -> dict[str, Any]:
        return {"given": self.batches_done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.batches_done = state["given"]
