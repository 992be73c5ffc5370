"""Forecast of the peak memory of a training, from steps with a part of its largest batch.

Nothing here is a formula of some model, and no tensors are counted: what an allocator makes of them
is up to twice as much. Where a step is quick, the whole batch is run. Else real steps are made with
a few rows and with twice as many, and the memory that the process rose to is continued along a
line. A large batch, which might not fit, is never made.
"""

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from regard.batching.example import Batch, Example, collate
from regard.text.special import UNKNOWN

STEPS_PER_SIZE = 3  # of each size: an allocator's room still grows in the second and third
MAX_FLOPS_PER_STEP = 2e11  # of the smaller batch: a second or two of one core
FLOPS_PER_WEIGHT = 6  # of one token: two forward, four backward
STATUS_FILE = Path("/proc/self/status")


class BatchShape(NamedTuple):
    """A batch: its rows, and its longest source and target, in tokens without marks."""

    rows: int
    source: int
    target: int

    def batch(self, rows: int) -> Batch:
        example = Example(0, [UNKNOWN] * self.source, [UNKNOWN] * self.target)
        return collate([example] * rows)


def forecast_peak_memory(
    step: Callable[[Batch], None], shape: BatchShape, weight_count: int
) -> int:
    """Return the peak of this process, in bytes, if `step` were made with all rows of the shape.

    The process must be new: of one that was larger before, nothing can be seen.
    """
    few_rows = probe_rows(shape, weight_count)
    few_peak = peak_after_steps(step, shape.batch(few_rows))
    if shape.rows == few_rows:
        return few_peak
    twice_peak = peak_after_steps(step, shape.batch(2 * few_rows))
    return few_peak + (twice_peak - few_peak) * (shape.rows - few_rows) // few_rows


def probe_rows(shape: BatchShape, weight_count: int) -> int:
    """Return all rows, or a quarter or less of them where a step of the model takes long."""
    flops_per_row = FLOPS_PER_WEIGHT * weight_count * (shape.source + shape.target + 2)
    affordable_rows = int(MAX_FLOPS_PER_STEP / flops_per_row)
    if affordable_rows >= shape.rows:
        return shape.rows
    return max(1, min(shape.rows // 4, affordable_rows))


def peak_after_steps(step: Callable[[Batch], None], batch: Batch) -> int:
    for _ in range(STEPS_PER_SIZE):
        step(batch)
    return peak_memory()


def peak_memory() -> int:
    """Return the most memory that this process had at once, in bytes."""
    if STATUS_FILE.exists():  # a child's own: getrusage also counts what its parent was before
        return status_bytes("VmHWM")
    max_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max_rss if sys.platform == "darwin" else 1024 * max_rss


def resident_memory() -> int:
    """Return the memory of this process now, in bytes; at its peak where that is not known."""
    return status_bytes("VmRSS") if STATUS_FILE.exists() else peak_memory()


def status_bytes(name: str) -> int:
    line = next(x for x in STATUS_FILE.read_text().splitlines() if x.startswith(name))
    return 1024 * int(line.split()[1])
