"""Keep the memory that a training step frees for the next step, or return it.

glibc returns large blocks to the system when they are freed. The next step gets them back page by
page, each with a fault and filled with zeros. Steps are alike, so keeping the blocks costs little.
A sharded training gathers and frees weights all the time, which leaves gaps in a kept memory.

oneDNN keeps the code that it prepares for a shape, by default for 1,024 products. Code takes 0.2 MB
each, so a process whose batches have many shapes grows by some 200 MB within hundreds of steps, and
by as much again for the gaps between them. The shapes of one batch need about twenty.
"""

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_BLOCK, SMALLEST_BLOCK = 2**30, 2**20
MAX_FREE = 2**31 - 1
KEPT_PRODUCTS = 128
CAPACITY_VARIABLES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")  # read at first use


def keep_freed_memory() -> None:
    """Let this process keep the memory that it frees; without effect where there is no glibc."""
    set_options(LARGEST_BLOCK, MAX_FREE)


def keep_few_products() -> None:
    """Let oneDNN keep the code of few products, unless a variable says how many.

    Without effect in a process that has used oneDNN before.
    """
    for name in CAPACITY_VARIABLES:
        os.environ.setdefault(name, str(KEPT_PRODUCTS))


def return_freed_memory() -> None:
    """Let this process return what it has freed, and from now on blocks of a megabyte and more."""
    set_options(SMALLEST_BLOCK, SMALLEST_BLOCK)
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if is_linux() else None
    if trim is not None:
        trim(0)


def set_options(mmap_threshold: int, trim_threshold: int) -> None:
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if is_linux() else None
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, mmap_threshold)
        set_option(M_TRIM_THRESHOLD, trim_threshold)


def is_linux() -> bool:
    return sys.platform.startswith("linux")
