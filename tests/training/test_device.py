"""A training on another device: its steps, its files, and what goes on after an interruption."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.simulated_device import simulated_device

import regard
from regard.errors import InputError
from regard.tasks.load import resolve_settings
from regard.training.distributed.group import WorkerGroup
from regard.training.trainer import Trainer

GROUP = WorkerGroup(device="simulated:0")
TINY: dict[str, Any] = {
    "data": {"kind": "dates", "size": 40, "held_out": 4, "languages": ["en"]},
    "model": {"kind": "transformer", "dim": 8, "heads": 2, "layers": 1, "dropout": 0.5},
    "train": {"examples_per_batch": 8, "validate_every": 2, "save_every": 3, "ema": 0.9}
    | {"keep_finished": True},
}


@pytest.fixture(autouse=True)
def _any_device(monkeypatch):
    monkeypatch.setattr("regard.run.find_device", torch.device)


def train(folder: Path, steps: int, group: WorkerGroup = GROUP) -> Trainer:
    settings = resolve_settings({**TINY, "train": {**TINY["train"], "steps": steps}})
    messages: list[str] = []
    trainer = Trainer(settings, folder, messages.append, group=group)
    for _ in trainer:
        pass
    trainer.messages = messages  # pyright: ignore[reportAttributeAccessIssue]
    return trainer


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoints/step-00000006/weights.safetensors")


def test_a_training_resumes_exactly(tmp_path, unchecked):
    """The random numbers of the device are no part of a checkpoint, and yet the same."""
    with simulated_device() as device:
        trainer = train(tmp_path / "whole", 6)
        assert {p.device for p in trainer.run.model.parameters()} == {device}
        train(tmp_path / "parts", 3)
        torch.manual_seed(1)  # of the device, too
        train(tmp_path / "parts", 6)
    whole, parts = weights_of(tmp_path / "whole"), weights_of(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    for name, weight in whole.items():
        assert torch.equal(weight, parts[name]), name


def test_a_run_moves_to_another_device(tmp_path, unchecked):
    """Its files do not depend on the device; a training goes on with a message."""
    with simulated_device():
        train(tmp_path, 3)
    trainer = train(tmp_path, 6, WorkerGroup())
    [message] = trainer.messages
    assert "began with device = simulated:0, and continues with cpu" in message
    run = regard.load(tmp_path, device="cpu")
    expected = run("4 May 2020").as_dict()
    with simulated_device():
        run.use_device("simulated:0")
        assert run.device == "simulated:0"
        assert run("4 May 2020").text == expected["text"]
        with pytest.raises(InputError, match="quantize: products with weights of 8 bits need the"):
            run.quantize()
        with pytest.raises(InputError, match="it needs the CPU, and the run is on simulated:0"):
            run.use_engine("ctranslate2")
        with pytest.raises(InputError, match="exports need the CPU, not simulated:0; use the dev"):
            regard.export_run(run, tmp_path / "exported")
        run.use_engine("auto").use_device("cpu")
    assert run("4 May 2020").as_dict() == expected
    with pytest.raises(InputError, match="weights of 8 bits need the CPU, not simulated:0"):
        run.quantize().use_device("simulated:0")
