"""Read the IDX format of MNIST, gzipped or not.

0  0  8  n        8: unsigned bytes; n: number of axes
n 32-bit numbers, big-endian: the length of each axis
the bytes, the last axis fastest
"""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.formats.lines import display_name, open_binary
from regard.errors import InputError

BYTE_TYPE, MAX_AXES = 8, 4
MAX_BYTES = 1 << 32


def read_idx(path: Path | str, axes: int) -> NDArray[np.uint8]:
    """Read an array that must have this number of axes."""
    with open_binary(path) as file:
        header = file.read(4)
        if len(header) < 4 or header[:2] != b"\0\0":
            raise InputError(
                f"{display_name(path)}: not an IDX file (it begins with {header.hex()!r})"
            )
        if header[2] != BYTE_TYPE:
            raise InputError(
                f"{display_name(path)}: IDX of type {header[2]:#04x}; only bytes (0x08) are read"
            )
        if header[3] != axes:
            contents = {1: "labels", 3: "images", 4: "color images"}
            actual, expected = contents.get(header[3], "neither"), contents[axes]
            raise InputError(
                f"{display_name(path)}: IDX of {header[3]} axes ({actual}), but expected {expected}"
            )
        size_bytes = file.read(4 * axes)
        sides = [int.from_bytes(size_bytes[n : n + 4]) for n in range(0, 4 * axes, 4)]
        total = math.prod(sides)
        if len(size_bytes) < 4 * axes or total > MAX_BYTES:
            raise InputError(f"{display_name(path)}: damaged IDX file (its sizes are {sides})")
        data = file.read(total + 1)
    if len(data) != total:
        comparison = "more" if len(data) > total else "less"
        raise InputError(
            f"{display_name(path)}: {comparison} data than the {total:,} bytes of its header"
        )
    if not total:
        raise InputError(f"{display_name(path)}: an empty array")
    return np.frombuffer(data, np.uint8).reshape(sides)
