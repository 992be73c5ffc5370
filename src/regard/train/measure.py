"""What a training takes of memory, measured in a process of its own: python -m regard.train.measure

Settings, sizes of vocabularies and a shape come as JSON on standard input, bytes go out.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from regard.batch.forecast import Shape, forecast, peak
from regard.batch.pair import Batch
from regard.config.load import resolve
from regard.config.settings import Settings
from regard.models.catalogue import build as build_model
from regard.tasks.loss import Loss
from regard.tasks.summarise import Summariser
from regard.tasks.translate import Translator
from regard.text.learn import train_tokeniser
from regard.train.loop import Training
from regard.train.make import forcing, training_of


class Memory(NamedTuple):
    """In bytes, but the shape of the batch that `activations` are of."""

    process: int  # Python, torch and the libraries that it loads
    weights: int
    gradients: int
    optimiser: int  # and the average of weights, if there is one
    activations: int
    saving: int  # the largest file of a checkpoint, which is made in memory first
    shape: Shape

    @property
    def peak(self) -> int:
        held = self.process + self.weights + self.gradients + self.optimiser
        return held + max(self.activations, self.saving)


def measure(settings: Settings, sizes: dict[str, int], shape: Shape) -> Memory:
    """Ask a new process, which may be as large as a half of what training will be."""
    asked = {"settings": settings.model_dump(), "sizes": sizes, "shape": shape}
    asked["threads"] = torch.get_num_threads()
    done = subprocess.run(
        [sys.executable, "-m", "regard.train.measure"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it was killed, for want of memory?"])[-1]
        raise ValueError(f"a step with half of the largest batch, {shape}, failed: {reason}")
    return Memory(**json.loads(done.stdout), shape=shape)


class Same:
    """The same batch, again and again."""

    batch: Batch
    epoch = 0

    def __init__(self) -> None:
        self.carried: dict[str, torch.Tensor] = {}

    def __next__(self) -> Batch:
        return self.batch

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        del state


def main() -> None:
    """Make steps, and say what there was before and at the peak."""
    asked = json.load(sys.stdin)
    torch.set_num_threads(asked["threads"])
    settings, shape = resolve(asked["settings"]), Shape(*asked["shape"])
    wanted = settings.model.model_dump(exclude={"kind"})
    model = build_model(settings.model.kind, {**wanted, **asked["sizes"]})
    unused = train_tokeniser("characters", ["a"], 5)
    batches = Same()
    train = settings.train

    def loss(batch: Batch, done: int) -> Loss:
        if settings.task == "summarise":
            summariser = Summariser(model, unused, unused)
            return summariser.loss(batch, train.label_smoothing, coverage=train.coverage)
        task = Translator(model, unused, unused)
        return task.loss(batch, train.label_smoothing, forcing(train, done))

    training = training_of(settings, model, loss, batches)

    def step(batch: Batch) -> None:
        batches.batch = batch
        training.step()

    step(Shape(1, 1, 1).batch(1))  # loads what torch loads when it is first used
    weights, held = size(model.parameters()), state_of(training)
    process = peak() - 2 * weights - held
    most = forecast(step, shape)
    activations = most - process - 2 * weights - held
    found = Memory(process, weights, weights, held, activations, max(weights, held), shape)
    print(json.dumps({k: v for k, v in found._asdict().items() if k != "shape"}))


def state_of(training: Training) -> int:
    tensors, _ = training.state()
    return size(tensors["optimiser"].values()) + size(tensors.get("average", {}).values())


def size(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


if __name__ == "__main__":
    main()
