"""Full precision for parts of a model, also under `torch.autocast`.

A recurrence adds a small change to its state at every step, and a memory is written many times.
Numbers of 16 bits lose such changes, and some of torch's recurrent kernels do not support them.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

WITHOUT_FLOAT64 = ("mps",)  # types of devices


def without_autocast(weight: Tensor) -> AbstractContextManager[object]:
    """Return a context without autocast on the device of `weight`."""
    device = weight.device.type
    if torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def interpolate(start: Tensor, end: Tensor, weight: Tensor) -> Tensor:
    """start + weight (end - start), in the dtype of `end`; `torch.lerp` needs equal dtypes."""
    return torch.lerp(start.to(end.dtype), end, weight.to(end.dtype))


def has_float64(device: torch.device) -> bool:
    return device.type not in WITHOUT_FLOAT64


def to_double(tensor: Tensor) -> Tensor:
    """Return a tensor in float64; on the CPU, if its device has no such numbers."""
    return tensor.double() if has_float64(tensor.device) else tensor.cpu().double()
