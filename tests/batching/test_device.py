"""Names of devices, and batches of any structure on a device."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from support.simulated_device import DEVICE, simulated_device
from torch import Tensor

from regard.batching.device import CPU, device_of, find_device, move_to_device, nested_tensors
from regard.errors import InputError


class Pair(NamedTuple):
    first: Tensor
    name: str


@dataclass(frozen=True)
class Batch:
    inputs: dict[str, Tensor]
    pairs: list[Pair]
    guide: Tensor | None = None


def batch() -> Batch:
    return Batch({"ids": torch.arange(3)}, [Pair(torch.ones(2), "a")])


def test_a_batch_of_any_structure_moves():
    with simulated_device() as device:
        moved = move_to_device((batch(), 5), device)
        assert [tensor.device for tensor in nested_tensors(moved)] == [device, device]
        assert isinstance(moved[0].pairs[0], Pair)
        assert moved[0].pairs[0].name == "a"
        assert moved[0].inputs["ids"].tolist() == [0, 1, 2]
        assert moved[0].guide is None
        assert moved[1] == 5
        assert device_of(moved) == device


def test_on_the_cpu_nothing_moves():
    given = batch()
    assert move_to_device(given, CPU) is given
    assert device_of(given) == device_of(None) == device_of("text") == CPU


def machine(monkeypatch, gpus: int, *, mps: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("gpus", "mps", "name", "expected"),
    [
        (0, False, "auto", "cpu"),
        (0, True, "auto", "mps"),
        (2, False, "auto", "cuda:0"),
        (2, False, "cuda", "cuda:0"),
        (2, False, "cuda:1", "cuda:1"),
        (2, True, "cpu", "cpu"),
        (0, True, torch.device("mps"), "mps"),
    ],
)
def test_devices_have_names(monkeypatch, gpus, mps, name, expected):
    machine(monkeypatch, gpus, mps=mps)
    assert find_device(name) == torch.device(expected)


@pytest.mark.parametrize("name", ["cuda", "cuda:2", "mps", "tpu", "", "simulated"])
def test_a_missing_device_is_one_line(monkeypatch, name):
    machine(monkeypatch, 1 if name == "cuda:2" else 0, mps=False)
    with pytest.raises(InputError, match=f"device: this machine has no '{name}'; choose from auto"):
        find_device(name)


def rule(value: Any) -> str:
    with pytest.raises((RuntimeError, TypeError)) as error:
        value()
    return str(error.value)


def test_the_simulated_device_has_the_rules_of_a_gpu():
    with simulated_device(float64=False):
        tensor = torch.ones(2, device=DEVICE)
        assert "on two devices" in rule(lambda: tensor + torch.ones(2))
        assert "on two devices" in rule(lambda: tensor[torch.tensor([0])])
        assert "generator is on the CPU" in rule(
            lambda: torch.rand(2, device=DEVICE, generator=torch.Generator())
        )
        assert "no float64" in rule(lambda: tensor.double())
        assert "numpy" in rule(lambda: tensor.numpy())
        assert (tensor + torch.tensor(1.0)).tolist() == [2.0, 2.0]
