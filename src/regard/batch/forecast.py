"""How much memory training will need at its peak, from steps with a part of its largest batch.

Nothing here is a formula of some model, and no tensors are counted: what an allocator makes of them
is up to twice as much. Real steps are made with a quarter and with half of the rows, and the memory
that the process rose to is continued along a line. A batch that would not fit is never made.
"""

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from regard.batch.pair import Batch, Pair, collate
from regard.text.special import UNKNOWN

STEPS = 4  # of each size: an allocator's room still grows in the second and third
STATUS = Path("/proc/self/status")


class Shape(NamedTuple):
    """A batch: its rows, and its longest source and target, in tokens without marks."""

    rows: int
    source: int
    target: int

    def batch(self, rows: int) -> Batch:
        pair = Pair(0, [UNKNOWN] * self.source, [UNKNOWN] * self.target)
        return collate([pair] * rows)


def forecast(step: Callable[[Batch], None], shape: Shape) -> int:
    """The peak of this process, in bytes, if `step` were made with all rows of the shape.

    The process must be new: of one that was larger before, nothing can be seen.
    """
    few = max(1, shape.rows // 4)
    less = risen(step, shape.batch(few))
    if shape.rows == few:
        return less
    more = risen(step, shape.batch(2 * few))
    return less + (more - less) * (shape.rows - few) // few


def risen(step: Callable[[Batch], None], batch: Batch) -> int:
    for _ in range(STEPS):
        step(batch)
    return peak()


def peak() -> int:
    """The most memory that this process had at once, in bytes."""
    if STATUS.exists():  # a child's own: getrusage also counts what its parent was before
        line = next(x for x in STATUS.read_text().splitlines() if x.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else 1024 * found
