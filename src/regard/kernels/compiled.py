"""The kernels in C++ of the folder `native`, which are compiled when regard is installed.

Without them (no compiler, or `REGARD_NATIVE=0`), the same functions are computed by operations of
torch, with the same results but for rounding. A kernel reads and writes contiguous tensors of one
thread, and has no gradient; its callers check that, once for many calls.
"""

import os
from types import ModuleType

import torch
from torch import Tensor


def load_native() -> ModuleType | None:
    """Return the compiled module; None if there is none, or if it is switched off."""
    if os.environ.get("REGARD_NATIVE") == "0":
        return None
    try:
        from regard.kernels import _native
    except ImportError:
        return None
    return _native


native = load_native()


def can_use_native(*tensors: Tensor) -> bool:
    """Return whether there are kernels, and they can read these tensors."""
    return native is not None and all(
        tensor.dtype is torch.float32 and tensor.device.type == "cpu" and tensor.is_contiguous()
        for tensor in tensors
    )
