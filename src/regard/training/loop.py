"""The training loop is a generator of optimizer steps; the caller logs, saves and stops.

training = Training(model, loss, batches, torch.optim.Adam(model.parameters()))
for step in training.steps(1000):
    print(step.loss)
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple

import torch
from torch import Tensor, nn

from regard.batching.device import move_to_device
from regard.batching.shares import SharedSource
from regard.batching.source import BatchSource
from regard.errors import InputError
from regard.files import JsonObject
from regard.models.protocols import Model
from regard.tasks.base import BatchT
from regard.tasks.loss import Loss
from regard.tasks.tensor_file import whole_tensor
from regard.training.distributed.group import WorkerGroup
from regard.training.ema import ExponentialMovingAverage
from regard.training.schedule import Plateau, Schedule, constant

TensorGroups = dict[str, dict[str, Tensor]]
"""Tensors by group and name, such as {"weights": {"embedding.weight": …}}."""

INITIAL_LOSS_SCALE = 256.0  # a loss is a sum over tokens, so its gradients are not tiny


class Step(NamedTuple):
    """The result of one optimizer step."""

    number: int  # from 1
    loss: float  # mean over the tokens
    tokens: int
    seconds: float
    learning_rate: float
    gradient_norm: float  # before clipping; 0 if float16 overflowed and the step was skipped
    epoch: int  # from 0, of the last batch


class Training(Generic[BatchT]):
    """A model in training: data, optimizer and schedule, whose complete state can be saved.

    The processes of a `group` share the batches, and sum their gradients.
    """

    def __init__(
        self,
        model: Model,
        loss_function: Callable[[BatchT, int], Loss],
        batches: BatchSource[BatchT],
        optimizer: torch.optim.Optimizer,
        *,
        schedule: Schedule | Plateau | None = None,
        clip: float | None = None,
        accumulate: int = 1,
        ema: ExponentialMovingAverage | None = None,
        autocast: torch.dtype | None = None,
        group: WorkerGroup | None = None,
    ):
        if accumulate < 1:
            raise InputError(f"accumulate must be at least 1, not {accumulate}")
        self.model, self.loss_function, self.batches = model, loss_function, batches
        self.optimizer, self.schedule = optimizer, schedule or constant()
        self.clip, self.accumulate, self.ema = clip, accumulate, ema
        self.autocast, self.group = autocast, group or WorkerGroup()
        self.device = next(model.parameters()).device
        # Without a factor, small gradients would be 0 in float16; bfloat16 has float32's range.
        self.scaler = torch.amp.GradScaler(
            self.device.type, INITIAL_LOSS_SCALE, enabled=autocast == torch.float16
        )
        self.base_rates = [group["lr"] for group in optimizer.param_groups]
        self.steps_done = 0

    def steps(self, until: int) -> Iterator[Step]:
        """Run optimizer steps until `steps_done` is `until`."""
        while self.steps_done < until:
            yield self.step()

    def step(self) -> Step:
        """Run one optimizer step."""
        self.model.train()
        self.group.seed_step(self.steps_done)
        start_time = time.perf_counter()
        factor = self.schedule(self.steps_done + 1)
        for group, rate in zip(self.optimizer.param_groups, self.base_rates, strict=True):
            group["lr"] = rate * factor
        losses, tokens = self.backward()
        norm = self.update_parameters(losses / tokens)
        self.steps_done += 1
        if self.ema is not None:
            self.ema.update(self.model)
        seconds, rate = time.perf_counter() - start_time, self.base_rates[0] * factor
        return Step(
            self.steps_done, losses / tokens, tokens, seconds, rate, norm, epoch=self.batches.epoch
        )

    def backward(self) -> tuple[float, int]:
        """Compute the mean gradient over all tokens of `accumulate` batches.

        Return the sum of the losses and the number of tokens.
        """
        self.optimizer.zero_grad(set_to_none=True)
        losses: list[Loss] = []
        batches = [self.next_batch() for _ in range(self.accumulate)]
        for batch, counts in batches:
            with torch.autocast(self.device.type, self.autocast, enabled=self.autocast is not None):
                loss = self.loss_function(batch, self.steps_done)
            if not counts:
                loss = Loss(0 * loss.total, 0)
            self.scaler.scale(loss.total).backward()
            losses.append(Loss(loss.total.detach(), loss.count))
        total, tokens = self.group.sums(
            [sum(part.total.item() for part in losses), sum(part.count for part in losses)]
        )
        self.group.sum_gradients(self.model.parameters())
        if self.scaler.is_enabled():
            self.scaler.unscale_(self.optimizer)
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(tokens)
        return total, int(tokens)

    def next_batch(self) -> tuple[BatchT, bool]:
        """Return the next batch, or this process's share of it, and whether it counts."""
        batch = move_to_device(next(self.batches), self.device)
        return batch, not isinstance(self.batches, SharedSource) or self.batches.has_share

    def update_parameters(self, mean_loss: float) -> float:
        """Clip the gradients and run the optimizer; return the norm before clipping.

        If float16 overflowed in the backward pass, no parameter changes, the next loss has a
        smaller factor, and the norm is 0.
        """
        norm, factor = self.clip_gradients(), self.scaler.get_scale()
        overflowed = self.scaler.is_enabled() and math.isfinite(mean_loss) and factor > 1
        if not math.isfinite(norm) and not overflowed:
            raise InputError(
                f"step {self.steps_done + 1}: the gradient norm is {norm}; lower "
                "train.learning_rate or train.max_grad_norm"
            )
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return norm if math.isfinite(norm) else 0.0

    def clip_gradients(self) -> float:
        limit = math.inf if self.clip is None else self.clip
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        return whole_tensor(norm).item()

    def state_dict(self) -> tuple[TensorGroups, JsonObject]:
        """Return tensors by group, and plain data.

        A training that loads them continues bit for bit, if the data are the same.
        """
        optimizer_tensors, optimizer_numbers = flatten_optimizer_state(self.optimizer)
        tensors = {
            "weights": dict(self.model.state_dict()),
            "optimizer": optimizer_tensors,
            "random": {"torch": torch.get_rng_state()},
        }
        if self.batches.carried:
            tensors["carried"] = self.batches.carried
        metadata: JsonObject = {
            "done": self.steps_done,
            "batches": self.batches.state_dict(),
            "optimizer": optimizer_numbers,
        }
        if isinstance(self.schedule, Plateau):
            metadata["schedule"] = self.schedule.state_dict()
        if self.scaler.is_enabled():
            metadata["scaler"] = self.scaler.state_dict()
        if self.ema is not None:
            tensors["average"] = self.ema.weights
            metadata["average"] = self.ema.updates
        return tensors, metadata

    def load_state_dict(self, tensors: TensorGroups, metadata: JsonObject) -> None:
        self.model.load_state_dict(tensors["weights"])
        restore_optimizer_state(self.optimizer, tensors["optimizer"], metadata["optimizer"])
        torch.set_rng_state(tensors["random"]["torch"])
        self.batches.load_state_dict(metadata["batches"])
        self.batches.carried = dict(tensors.get("carried", {}))
        if isinstance(self.schedule, Plateau):
            self.schedule.load_state_dict(metadata["schedule"])
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(metadata["scaler"])
        if self.ema is not None:
            self.ema.load_weights(tensors["average"])
            self.ema.updates = metadata["average"]
        self.steps_done = metadata["done"]

    def resume_from_weights(self, weights: dict[str, Tensor], metadata: JsonObject) -> None:
        """Continue with these weights at the position in `metadata`, with a new optimizer."""
        self.model.load_state_dict(weights)
        self.batches.load_state_dict(metadata["batches"])
        if isinstance(self.schedule, Plateau):
            self.schedule.load_state_dict(metadata["schedule"])
        if self.ema is not None:
            self.ema.load_weights(weights)
            self.ema.updates = metadata["average"]
        self.steps_done = metadata["done"]


def flatten_optimizer_state(
    optimizer: torch.optim.Optimizer,
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Return the tensors of an optimizer's state, and its numbers, as `parameter/name`."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, float] = {}
    for parameter, entries in optimizer.state_dict()["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{parameter}/{name}"] = value
            elif value is not None:
                numbers[f"{parameter}/{name}"] = value
    return tensors, numbers


def restore_optimizer_state(
    optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], numbers: dict[str, float]
) -> None:
    """Load a state that `flatten_optimizer_state` returned."""
    state: dict[int, dict[str, Tensor | float]] = {}
    for key, value in [*tensors.items(), *numbers.items()]:
        parameter, _, name = key.partition("/")
        state.setdefault(int(parameter), {})[name] = value
    current_state = optimizer.state_dict()
    optimizer.load_state_dict({"state": state, "param_groups": current_state["param_groups"]})


AnyTraining = Training[Any]
