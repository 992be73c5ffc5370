"""The kernels in C++ of the folder `native`, which are compiled when regard is installed.

Without them (no compiler, or `REGARD_NATIVE=0`), the same functions are computed by operations of
torch, with the same results but for rounding. A kernel reads and writes contiguous tensors of one
thread, and has no gradient; its callers check that, once for many calls.
"""

import ctypes
import os
from pathlib import Path
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
    check_is_current(Path(_native.__file__))
    _native.use_openmp(find_openmp())
    return _native


def find_openmp() -> int:
    """Return the address of `GOMP_parallel` in the OpenMP that torch brings; 0 if it has another.

    Kernels share the threads of torch, and the number of threads that is set in torch.
    """
    for library in (Path(torch.__file__).parent / "lib").glob("libgomp*.so*"):
        function = getattr(ctypes.CDLL(str(library)), "GOMP_parallel", None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


def check_is_current(library: Path) -> None:
    """Raise an error if the sources, which a checkout has, are newer than the compiled module."""
    compiled_at = library.stat().st_mtime
    for source in (library.parent / "native").glob("*.*"):
        if source.stat().st_mtime > compiled_at:
            raise ImportError(
                f"{library.name} is older than {source.name}; compile it again: "
                "`make lint`, or pip install --editable ."
            )


native = load_native()


def can_use_native(*tensors: Tensor) -> bool:
    """Return whether there are kernels, and they can read these tensors."""
    return native is not None and all(
        tensor.dtype is torch.float32 and tensor.device.type == "cpu" and tensor.is_contiguous()
        for tensor in tensors
    )
