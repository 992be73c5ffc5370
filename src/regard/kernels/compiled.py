"""The kernels in C++ of the folder `native`, which are compiled when regard is installed.

Without them (no compiler, or `REGARD_NATIVE=0`), the same functions are computed by operations of
torch, with the same results but for rounding. A kernel reads and writes contiguous tensors of one
thread, and has no gradient; its callers check that, once for many calls.
"""

import os
from types import ModuleType


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
