"""Devices by name, and batches on a device.

A batch is built on the CPU, whatever the task: tensors in dataclasses, tuples, lists and mappings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

import torch
from torch import Tensor

from regard.errors import InputError

T = TypeVar("T")
CPU = torch.device("cpu")


def find_device(name: str | torch.device) -> torch.device:
    """Return the device of a name: cpu, cuda, cuda:1, mps; auto is the first of cuda, mps, cpu."""
    names = available_devices()
    if str(name) == "auto":
        return torch.device(names[0])
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or str(device) not in {*names, *(name.partition(":")[0] for name in names)}:
        raise InputError(
            f"device: this machine has no {str(name)!r}; choose from auto, {', '.join(names)}"
        )
    return torch.device("cuda", device.index or 0) if device.type == "cuda" else device


def available_devices() -> list[str]:
    """Return the names of the devices of this machine, the fastest first."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    names = [f"cuda:{index}" for index in range(count)]
    if torch.backends.mps.is_available():
        names.append("mps")
    return [*names, "cpu"]


def move_to_device(value: T, device: torch.device) -> T:
    """Return a value of any structure with its tensors on a device; on the CPU, the value itself.

    Copies to a GPU run beside the program, from memory that the system does not move.
    """
    if device.type == "cpu":
        return value
    return cast("T", moved(value, device))


def moved(value: object, device: torch.device) -> object:
    if isinstance(value, Tensor):
        if device.type == "cuda" and value.device.type == "cpu":
            return value.pin_memory().to(device, non_blocking=True)
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: moved(part, device) for key, part in value.items()}
    if isinstance(value, list | tuple):
        build = getattr(type(value), "_make", type(value))  # of a NamedTuple
        return build([moved(part, device) for part in value])
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **{name: moved(part, device) for name, part in parts.items()})
    return value


def device_of(value: object) -> torch.device:
    """Return the device of the first tensor in a value of any structure; the CPU without one."""
    tensor = next(nested_tensors(value), None)
    return CPU if tensor is None else tensor.device


def nested_tensors(value: object) -> Iterator[Tensor]:
    """Yield the tensors in a value of any structure."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from nested_tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from nested_tensors(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from nested_tensors(getattr(value, field.name))
