"""The training loop is a generator: it makes steps, and who runs it logs, saves and stops.

training = Training(model, loss_of, batches, torch.optim.Adam(model.parameters()))
for step in training.steps(1000):
    print(step.loss)
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from regard.tasks.loss import Loss
from regard.train.average import Average
from regard.train.schedule import Plateau, Schedule, constant


class Step(NamedTuple):
    number: int  # from 1
    loss: float  # mean over the tokens
    tokens: int
    seconds: float
    learning_rate: float
    gradient_norm: float  # before clipping
    epoch: int  # from 0, of the last batch


@runtime_checkable
class Source(Protocol):
    """What batches come from: an endless iterator whose place can be kept.

    `carried` is what a model takes from a batch into the next one, if anything.
    """

    carried: dict[str, Tensor]

    @property
    def epoch(self) -> int: ...
    def __next__(self) -> Any: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


class Training:
    """A model in training, with all that is needed to go on exactly where it was left."""

    def __init__(
        self,
        model: nn.Module,
        loss_of: Callable[[Any], Loss],
        batches: Source,
        optimiser: torch.optim.Optimizer,
        *,
        schedule: Schedule | Plateau | None = None,
        clip: float | None = None,
        accumulate: int = 1,
        average: Average | None = None,
        autocast: torch.dtype | None = None,
    ):
        if accumulate < 1:
            raise ValueError(f"accumulate must be at least 1, not {accumulate}")
        self.model, self.loss_of, self.batches = model, loss_of, batches
        self.optimiser, self.schedule = optimiser, schedule or constant()
        self.clip, self.accumulate, self.average = clip, accumulate, average
        self.autocast = autocast
        self.rates = [group["lr"] for group in optimiser.param_groups]
        self.done = 0

    def steps(self, until: int) -> Iterator[Step]:
        """Make steps until that many are done in all."""
        self.model.train()
        while self.done < until:
            yield self.step()

    def step(self) -> Step:
        began = time.perf_counter()
        factor = self.schedule(self.done + 1)
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        losses, tokens = self.backward()
        norm = self.clipped()
        if not math.isfinite(norm):
            raise ValueError(
                f"step {self.done + 1}: the gradient is {norm}; lower the learning rate, or clip"
            )
        self.optimiser.step()
        self.done += 1
        if self.average is not None:
            self.average.update(self.model)
        seconds, rate = time.perf_counter() - began, self.rates[0] * factor
        return Step(
            self.done, losses / tokens, tokens, seconds, rate, norm, epoch=self.batches.epoch
        )

    def backward(self) -> tuple[float, int]:
        """The mean gradient over all tokens of `accumulate` batches, as if they were one."""
        self.optimiser.zero_grad(set_to_none=True)
        parts: list[Loss] = []
        batches = [next(self.batches) for _ in range(self.accumulate)]
        device = next(self.model.parameters()).device.type
        for batch in batches:
            with torch.autocast(device, self.autocast, enabled=self.autocast is not None):
                loss = self.loss_of(batch)
            loss.total.backward()
            parts.append(Loss(loss.total.detach(), loss.tokens))
        tokens = sum(part.tokens for part in parts)
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(tokens)
        return sum(part.total.item() for part in parts), tokens

    def clipped(self) -> float:
        limit = math.inf if self.clip is None else self.clip
        return nn.utils.clip_grad_norm_(self.model.parameters(), limit).item()

    def state(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        """Tensors by group and plain facts; with the same data, `restore` goes on bit for bit."""
        optimiser, settings = flattened(self.optimiser)
        tensors = {
            "weights": dict(self.model.state_dict()),
            "optimiser": optimiser,
            "random": {"torch": torch.get_rng_state()},
        }
        if self.batches.carried:
            tensors["carried"] = self.batches.carried
        facts = {"done": self.done, "batches": self.batches.state(), "optimiser": settings}
        if isinstance(self.schedule, Plateau):
            facts["schedule"] = self.schedule.state()
        if self.average is not None:
            tensors["average"] = self.average.weights
            facts["average"] = self.average.updates
        return tensors, facts

    def restore(self, tensors: dict[str, dict[str, Tensor]], facts: dict[str, Any]) -> None:
        self.model.load_state_dict(tensors["weights"])
        unflatten(self.optimiser, tensors["optimiser"], facts["optimiser"])
        torch.set_rng_state(tensors["random"]["torch"])
        self.batches.restore(facts["batches"])
        self.batches.carried = dict(tensors.get("carried", {}))
        if isinstance(self.schedule, Plateau):
            self.schedule.restore(facts["schedule"])
        if self.average is not None:
            self.average.weights = {k: v.clone() for k, v in tensors["average"].items()}
            self.average.updates = facts["average"]
        self.done = facts["done"]


def flattened(optimiser: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimiser's state as tensors `parameter/name`, and the numbers that are not tensors."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, float] = {}
    for parameter, entries in optimiser.state_dict()["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{parameter}/{name}"] = value
            elif value is not None:
                numbers[f"{parameter}/{name}"] = value
    return tensors, numbers


def unflatten(
    optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor], numbers: dict[str, Any]
) -> None:
    state: dict[int, dict[str, Any]] = {}
    for key, value in [*tensors.items(), *numbers.items()]:
        parameter, _, name = key.partition("/")
        state.setdefault(int(parameter), {})[name] = value
    whole = optimiser.state_dict()
    optimiser.load_state_dict({"state": state, "param_groups": whole["param_groups"]})
