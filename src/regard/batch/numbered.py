"""Batches that are made by their number, as many as are wanted."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor


class Numbered:
    """An endless iterator whose place is a number: `make(n)` is the n-th batch, from 0.

    An epoch never ends: what is made has no last one.
    """

    epoch = 0

    def __init__(self, make: Callable[[int], Any]):
        self.make, self.given = make, 0
        self.carried: dict[str, Tensor] = {}  # nothing: a batch does not go on with the one before

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        made = self.make(self.given)
        self.given += 1
        return made

    def state(self) -> dict[str, Any]:
        return {"given": self.given}

    def restore(self, state: dict[str, Any]) -> None:
        self.given = state["given"]
