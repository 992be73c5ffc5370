"""Batches of rollouts: the model plays a round of episodes, and trains on it a few times.

e: episodes of a round
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from regard.errors import InputError
from regard.files import JsonObject

ORDER_KEY = "order"


class RolloutBatches:
    """An endless iterator: `play` gives a round by its number, as tensors [e …] by name.

    Each round is cut into batches of `size` whole episodes, in another order each of `passes`
    times. The round that is being learned from travels in `carried`: training goes on exactly.
    """

    def __init__(
        self,
        play_rollout: Callable[[int], dict[str, Shaped[Tensor, "e ..."]]],
        *,
        episodes_per_batch: int,
        passes: int,
        collate: Callable[[dict[str, Tensor]], Any] = lambda parts: parts,
    ):
        for name, number in {"episodes_per_batch": episodes_per_batch, "passes": passes}.items():
            if number < 1:
                raise InputError(f"{name} must be positive, not {number}")
        self.play_rollout, self.episodes_per_batch, self.passes, self.collate = (
            play_rollout,
            episodes_per_batch,
            passes,
            collate,
        )
        self.carried: dict[str, Tensor] = {}
        self.epoch, self.batches_done = -1, 0

    batches_per_epoch = None  # rollouts are endless

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.carried or self.batches_done == self.batches_per_rollout:
            self.epoch, self.batches_done = self.epoch + 1, 0
            self.carried = self.play_rollout(self.epoch)
            episodes = len(next(iter(self.carried.values())))
            orders = [torch.randperm(episodes) for _ in range(self.passes)]
            self.carried[ORDER_KEY] = torch.stack(orders, 1)
        batches_per_pass = -(-len(self.carried[ORDER_KEY]) // self.episodes_per_batch)
        pass_index, batch_index = divmod(self.batches_done, batches_per_pass)
        rows = self.carried[ORDER_KEY][
            batch_index * self.episodes_per_batch : (batch_index + 1) * self.episodes_per_batch,
            pass_index,
        ]
        self.batches_done += 1
        tensors = {name: tensor[rows] for name, tensor in self.carried.items() if name != ORDER_KEY}
        return self.collate(tensors)

    @property
    def batches_per_rollout(self) -> int:
        """Batches of the round."""
        return -(-len(self.carried[ORDER_KEY]) // self.episodes_per_batch) * self.passes

    def state_dict(self) -> JsonObject:
        return {"epoch": self.epoch, "given": self.batches_done}

    def load_state_dict(self, state: JsonObject) -> None:
        self.epoch, self.batches_done = state["epoch"], state["given"]
