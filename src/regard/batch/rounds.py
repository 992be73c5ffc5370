"""Batches of what a model has lived through: it plays a round, and learns from it a few times.

e: episodes of a round
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

ORDER = "order"


class Rounds:
    """An endless iterator: `play` gives a round by its number, as tensors [e …] by name.

    Each round is cut into batches of `size` whole episodes, in another order each of `passes`
    times. The round that is being learnt from travels in `carried`: training goes on exactly.
    """

    def __init__(
        self,
        play: Callable[[int], dict[str, Shaped[Tensor, "e ..."]]],
        *,
        size: int,
        passes: int,
        collate: Callable[[dict[str, Tensor]], Any] = lambda parts: parts,
    ):
        for name, number in {"size": size, "passes": passes}.items():
            if number < 1:
                raise ValueError(f"{name} must be positive, not {number}")
        self.play, self.size, self.passes, self.collate = play, size, passes, collate
        self.carried: dict[str, Tensor] = {}
        self.epoch, self.given = -1, 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.carried or self.given == self.many:
            self.epoch, self.given = self.epoch + 1, 0
            self.carried = self.play(self.epoch)
            episodes = len(next(iter(self.carried.values())))
            orders = [torch.randperm(episodes) for _ in range(self.passes)]
            self.carried[ORDER] = torch.stack(orders, 1)
        each = -(-len(self.carried[ORDER]) // self.size)
        turn, place = divmod(self.given, each)
        rows = self.carried[ORDER][place * self.size : (place + 1) * self.size, turn]
        self.given += 1
        parts = {name: one[rows] for name, one in self.carried.items() if name != ORDER}
        return self.collate(parts)

    @property
    def many(self) -> int:
        """Batches of the round."""
        return -(-len(self.carried[ORDER]) // self.size) * self.passes

    def state(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "given": self.given}

    def restore(self, state: dict[str, Any]) -> None:
        self.epoch, self.given = state["epoch"], state["given"]
