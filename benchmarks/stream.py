"""Predict for a stream of lines: memory for 1,000 and for 1,000,000 lines, and the first answer.

    python benchmarks/stream.py [--lines 1000000] [--folder FOLDER]

Trains a tiny classifier, and pipes lines to `regard predict` in a process of its own. A thread
writes the lines; the number of them that were written when the first answer appears is noted.
The largest resident memory is VmHWM of /proc: that of `wait4` begins with the memory of this
process. Exits with 1 if the memory grows by 50 MB or more, if an answer is missing or differs from
that to the same line earlier, or if the first answer appears after the end of the input.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, NamedTuple, cast

import regard

WORDS = ("good", "bad", "dull", "fine", "long", "short", "film", "plot")
DISTINCT_LINES = 1000
MAX_GROWTH_MB = 50


class Measurement(NamedTuple):
    """One stream: what was seen of it."""

    lines: int
    peak_mb: float
    seconds: float
    written_before_first_answer: int
    is_correct: bool


def line_text(number: int) -> str:
    """Return one of a thousand different lines."""
    number %= DISTINCT_LINES
    return " ".join(WORDS[(number >> (3 * shift)) % 8] for shift in range(3 + number % 5))


def measure(run: Path, count: int) -> Measurement:
    """Pipe lines to `regard predict`, and compare each answer with that to the same line before."""
    command = [sys.executable, "-m", "regard", "predict", str(run)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    written, start = 0, time.monotonic()

    def write() -> None:
        nonlocal written
        for number in range(count):
            stdin.write(f"{line_text(number)}\n".encode())
            written += 1
        stdin.close()

    threading.Thread(target=write, daemon=True).start()
    first, answers, is_correct, total, peak = -1, dict[int, bytes](), True, 0, 0
    for number, answer in enumerate(stdout):
        first = written if first < 0 else first
        expected = answers.setdefault(number % DISTINCT_LINES, answer)
        is_correct, total = is_correct and answer == expected, total + 1
        if total % 500 == 0:
            peak = max(peak, peak_kilobytes(process.pid))
    is_correct = is_correct and total == count and process.wait() == 0
    return Measurement(count, peak / 1024, time.monotonic() - start, first, is_correct)


def peak_kilobytes(process: int) -> int:
    """Return the largest resident memory of a process so far, or 0 if it has just ended."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) if found else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run = (options.folder or Path(temporary)) / "run"
        regard.fit(
            "classify",
            [{"text": f"a {word} film", "label": word} for word in WORDS] * 8,
            {"kind": "bert", "dim": 8, "heads": 2, "layers": 1},
            steps=20,
            folder=run,
            progress=False,
        )
        small, large = (measure(run, count) for count in (1000, options.lines))
    print("| lines | peak memory, MB | seconds | lines written at first answer | answers |")
    print("|---|---|---|---|---|")
    for m in (small, large):
        state = "all, in order" if m.is_correct else "WRONG"
        print(
            f"| {m.lines:,} | {m.peak_mb:.0f} | {m.seconds:.1f} | "
            f"{m.written_before_first_answer:,} | {state} |"
        )
    is_flat = large.peak_mb - small.peak_mb < MAX_GROWTH_MB
    is_early = large.written_before_first_answer < large.lines
    sys.exit(not (is_flat and is_early and small.is_correct and large.is_correct))


if __name__ == "__main__":
    main()
