"""Measure the memory of a training in its own process: python -m regard.training.memory

Settings, sizes of vocabularies and a shape come as JSON on standard input, bytes go out.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from regard.batching.example import Batch
from regard.batching.memory_forecast import BatchShape, forecast_peak_memory, peak_memory
from regard.config.settings import Settings
from regard.models.catalogue import build_model as build_model
from regard.tasks.building import model_options
from regard.tasks.catalogue import find_task
from regard.tasks.load import resolve_settings
from regard.text.train import train_tokenizer
from regard.training.build import build_training
from regard.training.loop import Training


class MemoryUsage(NamedTuple):
    """In bytes, but the shape of the batch that `activations` are of."""

    process: int  # Python, torch and the libraries that it loads
    weights: int
    gradients: int
    optimizer: int  # and the average of weights, if there is one
    activations: int
    saving: int  # the largest file of a checkpoint, which is made in memory first
    shape: BatchShape

    @property
    def peak(self) -> int:
        resident = self.process + self.weights + self.gradients + self.optimizer
        return resident + max(self.activations, self.saving)


def measure_memory(settings: Settings, sizes: dict[str, int], shape: BatchShape) -> MemoryUsage:
    """Ask a new process, which may be as large as a half of what training will be."""
    request = {"settings": settings.model_dump(), "sizes": sizes, "shape": shape}
    request["threads"] = torch.get_num_threads()
    completed = subprocess.run(
        [sys.executable, "-m", "regard.training.memory"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        reason = (completed.stderr.strip().splitlines() or ["it was killed, for want of memory?"])[
            -1
        ]
        raise ValueError(f"a step with half of the largest batch, {shape}, failed: {reason}")
    return MemoryUsage(**json.loads(completed.stdout), shape=shape)


class RepeatedBatch:
    """The same batch, again and again."""

    batch: Batch
    epoch = 0

    def __init__(self) -> None:
        self.carried: dict[str, torch.Tensor] = {}

    def __next__(self) -> Batch:
        return self.batch

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        del state


def main() -> None:
    """Make steps, and say what there was before and at the peak."""
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    settings, shape = resolve_settings(request["settings"]), BatchShape(*request["shape"])
    model = build_model(settings.model.kind, {**model_options(settings.model), **request["sizes"]})
    tokenizer, batches = train_tokenizer("characters", ["a"], 5), RepeatedBatch()
    builder = find_task(settings.task).builder()
    vocabularies = dict.fromkeys(builder.vocabulary_loaders(settings), tokenizer)
    training = build_training(settings, builder.build_task(settings, vocabularies, model), batches)

    def step(batch: Batch) -> None:
        batches.batch = batch
        training.step()

    step(BatchShape(1, 1, 1).batch(1))  # loads what torch loads when it is first used
    weights, state_bytes = total_bytes(model.parameters()), optimizer_state_bytes(training)
    process = peak_memory() - 2 * weights - state_bytes
    peak_bytes = forecast_peak_memory(step, shape)
    activations = peak_bytes - process - 2 * weights - state_bytes
    usage = MemoryUsage(
        process, weights, weights, state_bytes, activations, max(weights, state_bytes), shape
    )
    print(json.dumps({k: v for k, v in usage._asdict().items() if k != "shape"}))


def optimizer_state_bytes(training: Training) -> int:
    tensors, _ = training.state_dict()
    return total_bytes(tensors["optimiser"].values()) + total_bytes(
        tensors.get("average", {}).values()
    )


def total_bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


if __name__ == "__main__":
    main()
