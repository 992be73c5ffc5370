"""Checks of arguments; each raises a ValueError that names the argument and its value."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor as is_transformed

from regard.errors import InputError


def check_finite(name: str, tensor: Tensor) -> None:
    """Reject NaN, which the fused kernel would treat as 0.

    numpy makes the pass on one core. torch would use all cores, which is slow on a busy machine.
    The check does nothing under `torch.compile` and `torch.func`, and on other devices.
    """
    if torch.compiler.is_compiling() or tensor.device.type != "cpu" or is_transformed(tensor):
        return
    values = tensor.detach()
    if values.dtype == torch.bfloat16:
        values = values.float()  # numpy has no bfloat16
    lowest = values.numpy().min() if values.numel() else 0.0  # NaN if there is one
    if lowest != lowest:
        index = tuple(values.isnan().nonzero()[0].tolist())
        raise InputError(f"{name} holds NaN, first at {index} of shape {tuple(values.shape)}")


def check_float(name: str, tensor: Tensor) -> None:
    if not tensor.is_floating_point():
        raise InputError(f"{name} must be floating point, not {tensor.dtype}")


def check_sequence(name: str, tensor: Tensor) -> None:
    """Check for floating-point vectors of shape [..., positions, width]."""
    check_float(name, tensor)
    if tensor.ndim < 2:
        raise InputError(
            f"{name} must be [..., positions, width], not of shape {tuple(tensor.shape)}"
        )


def check_width(name: str, tensor: Tensor, width: int) -> None:
    if tensor.shape[-1] != width:
        raise InputError(f"{name} must be {width} wide, not {tensor.shape[-1]}")


def check_valid(valid: Tensor, shape: torch.Size) -> None:
    """Check that `valid` marks real slots of `shape`: (leading axes, slots)."""
    if valid.dtype != torch.bool:
        raise InputError(f"valid must be boolean (True: a real slot), not {valid.dtype}")
    check_broadcasts_to("valid", valid.shape, shape)


def check_positive(name: str, number: int | float) -> None:
    if not number > 0:
        raise InputError(f"{name} must be positive, not {number}")


def check_dropout(dropout: float) -> None:
    if not 0 <= dropout < 1:
        raise InputError(f"dropout must be in [0, 1), not {dropout}")


def check_broadcasts_to(name: str, shape: Sequence[int], target_shape: Sequence[int]) -> None:
    """Check that `shape` broadcasts to `target_shape`, with a full last axis."""
    if not can_broadcast(shape, target_shape) or shape[-1] != target_shape[-1]:
        raise InputError(
            f"{name} has shape {tuple(shape)}, which does not fit {tuple(target_shape)}"
        )


def can_broadcast(shape: Sequence[int], target_shape: Sequence[int]) -> bool:
    """Return whether `shape` can be expanded to `target_shape`."""
    if len(shape) > len(target_shape):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(target_shape), strict=False))
