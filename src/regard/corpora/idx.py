"""Files in the IDX format of MNIST and its kin: a header, then bytes; gzipped or not.

0  0  8  n        8: bytes; n: how many axes
n numbers of 32 bits, the greatest byte first: how long each axis is
the bytes, the last axis running fastest
"""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.corpora.lines import opened, shown

BYTES, MOST_AXES = 8, 4
MOST = 1 << 32


def read_idx(path: Path | str, axes: int) -> NDArray[np.uint8]:
    """The array in a file, which has so many axes."""
    with opened(path) as file:
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0":
            raise ValueError(f"{shown(path)}: not an IDX file: it begins with {head.hex()!r}")
        if head[2] != BYTES:
            raise ValueError(
                f"{shown(path)}: IDX of type {head[2]:#04x}; only bytes (0x08) are read"
            )
        if head[3] != axes:
            what = {1: "labels", 3: "pictures", 4: "pictures in colours"}
            found, wanted = what.get(head[3], "neither"), what[axes]
            raise ValueError(
                f"{shown(path)}: IDX of {head[3]} axes ({found}), where {wanted} should be"
            )
        told = file.read(4 * axes)
        sides = [int.from_bytes(told[n : n + 4]) for n in range(0, 4 * axes, 4)]
        total = math.prod(sides)
        if len(told) < 4 * axes or total > MOST:
            raise ValueError(f"{shown(path)}: a damaged IDX file: its sizes are {sides}")
        data = file.read(total + 1)
    if len(data) != total:
        much = "more" if len(data) > total else "less"
        raise ValueError(
            f"{shown(path)}: {much} data than the {total:,} bytes that its header says"
        )
    if not total:
        raise ValueError(f"{shown(path)}: empty, nothing to read")
    return np.frombuffer(data, np.uint8).reshape(sides)
