"""Memory that a training step frees is kept for the next step.

glibc returns large blocks to the system when they are freed. The next step gets them back page by
page, each with a fault and filled with zeros. Steps are alike, so keeping the blocks costs little.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_BLOCK = 2**30
MAX_FREE = 2**31 - 1


def keep_freed_memory() -> None:
    """Let this process keep the memory that it frees; without effect where there is no glibc."""
    if not sys.platform.startswith("linux"):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, LARGEST_BLOCK)
        set_option(M_TRIM_THRESHOLD, MAX_FREE)
