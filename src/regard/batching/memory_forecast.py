"""Forecast of the peak memory of a training, from steps with a part of its largest batch.

Nothing here is a formula of some model, and no tensors are counted: what an allocator makes of them
is up to twice as much. Real steps are made with a quarter and with half of the rows, and the memory
that the process rose to is continued along a line. A batch that would not fit is never made.
"""

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from regard.batching.example import Batch, Example, collate
from regard.text.special import UNKNOWN

STEPS_PER_SIZE = 4  # of each size: an allocator's room still grows in the second and third
STATUS_FILE = Path("/proc/self/status")


class BatchShape(NamedTuple):
    """A batch: its rows, and its longest source and target, in tokens without marks."""

    rows: int
    source: int
    target: int

    def batch(self, rows: int) -> Batch:
        example = Example(0, [UNKNOWN] * self.source, [UNKNOWN] * self.target)
        return collate([example] * rows)


def forecast_peak_memory(step: Callable[[Batch], None], shape: BatchShape) -> int:
    """The peak of this process, in bytes, if `step` were made with all rows of the shape.

    The process must be new: of one that was larger before, nothing can be seen.
    """
    quarter_rows = max(1, shape.rows // 4)
    quarter_peak = peak_after_steps(step, shape.batch(quarter_rows))
    if shape.rows == quarter_rows:
        return quarter_peak
    half_peak = peak_after_steps(step, shape.batch(2 * quarter_rows))
    return quarter_peak + (half_peak - quarter_peak) * (shape.rows - quarter_rows) // quarter_rows


def peak_after_steps(step: Callable[[Batch], None], batch: Batch) -> int:
    for _ in range(STEPS_PER_SIZE):
        step(batch)
    return peak_memory()


def peak_memory() -> int:
    """The most memory that this process had at once, in bytes."""
    if STATUS_FILE.exists():  # a child's own: getrusage also counts what its parent was before
        line = next(x for x in STATUS_FILE.read_text().splitlines() if x.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    max_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max_rss if sys.platform == "darwin" else 1024 * max_rss
