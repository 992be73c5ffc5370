"""Measure the memory of a training in a separate process: python -m regard.training.memory_use

The process reads settings, vocabulary sizes and a batch shape as JSON from standard input, and
prints bytes as JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

import torch

from regard.batching.example import Batch
from regard.batching.memory_forecast import BatchShape, forecast_peak_memory, peak_memory
from regard.batching.source import RepeatedBatch
from regard.config.settings import Settings
from regard.errors import InputError
from regard.models.catalogue import build_model
from regard.tasks.building import model_options
from regard.tasks.catalogue import find_task
from regard.tasks.load import resolve_settings
from regard.text.train import train_tokenizer
from regard.training.build import build_training
from regard.training.loop import AnyTraining


class MemoryUsage(NamedTuple):
    """Memory of a training, in bytes, with batches of a shape."""

    process: int  # Python, torch and the libraries that it loads
    weights: int
    gradients: int
    optimizer: int  # with the moving average of weights, if there is one
    activations: int
    shape: BatchShape

    @property
    def peak(self) -> int:
        resident = self.process + self.weights + self.gradients + self.optimizer
        return resident + self.activations


def measure_memory(settings: Settings, sizes: dict[str, int], shape: BatchShape) -> MemoryUsage:
    """Estimate the memory of a training by steps with smaller batches in a new process."""
    request = {"settings": settings.model_dump(), "sizes": sizes, "shape": shape}
    request["threads"] = torch.get_num_threads()
    completed = subprocess.run(
        [sys.executable, "-m", "regard.training.memory_use"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},  # on a busy machine, spinning takes most
    )
    if completed.returncode:
        lines = completed.stderr.strip().splitlines() or ["killed, perhaps for lack of memory"]
        raise InputError(
            f"a step with a part of the largest batch ({shape}) failed: {lines[-1]}; "
            "make train.tokens_per_batch smaller"
        )
    return MemoryUsage(**json.loads(completed.stdout), shape=shape)


def main() -> None:
    """Run steps, and print the memory before them and at the peak."""
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    settings, shape = resolve_settings(request["settings"]), BatchShape(*request["shape"])
    model = build_model(settings.model.kind, {**model_options(settings.model), **request["sizes"]})
    tokenizer = train_tokenizer("characters", ["a"], 5)
    builder = find_task(settings.task).builder()
    vocabularies = dict.fromkeys(builder.vocabulary_loaders(settings), tokenizer)
    task = builder.build_task(settings, vocabularies, model)
    tiny_batch = BatchShape(1, 1, 1).batch(1)
    training = build_training(settings, task, RepeatedBatch(tiny_batch))
    training.steps_done = task.best_resets_after  # the later objective needs more memory

    def step(batch: Batch) -> None:
        training.batches = RepeatedBatch(batch)
        training.step()

    step(tiny_batch)  # torch loads some libraries at the first step
    weights, state_bytes = total_bytes(model.parameters()), optimizer_state_bytes(training)
    process = peak_memory() - 2 * weights - state_bytes
    peak_bytes = forecast_peak_memory(step, shape, sum(p.numel() for p in model.parameters()))
    activations = peak_bytes - process - 2 * weights - state_bytes
    usage = MemoryUsage(process, weights, weights, state_bytes, activations, shape)
    print(json.dumps({k: v for k, v in usage._asdict().items() if k != "shape"}))


def optimizer_state_bytes(training: AnyTraining) -> int:
    tensors, _ = training.state_dict()
    return total_bytes(tensors["optimizer"].values()) + total_bytes(
        tensors.get("average", {}).values()
    )


def total_bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


if __name__ == "__main__":
    main()
