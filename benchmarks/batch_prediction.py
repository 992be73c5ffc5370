"""Predict files while processes are killed: is every row there once, in order, with the same text?

    python benchmarks/batch_prediction.py [--lines 100000]

Trains a tiny classifier, and predicts JSON lines by `regard predict --input` in these ways:

- `alone`: with one worker process, and no interruption.
- `ray`: with --ray and two workers, of which one gets SIGKILL after a third of the parts.
- `processes`: with two workers. The command gets SIGINT (Ctrl-C) after a third of the parts and
  SIGKILL after two thirds, and is given again each time.
- `ray again`: with --ray, and SIGKILL for the command after a half.

Exits with 1 if a row is missing, out of order or differs from `alone`, or if a finished part was
written again. CPU seconds are those of all processes of a way, also of the killed ones.
"""

import argparse
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import regard

WORDS = ("good", "bad", "dull", "fine", "long", "short", "film", "plot")
SET_CHILD_SUBREAPER = 36  # of prctl: orphans become children of this process
RAY = ("--ray", "--workers", "2")


class Stop(NamedTuple):
    """What happens to a command when a share of the parts is finished."""

    share: float
    act: Callable[[subprocess.Popen[bytes]], None]


def line_text(number: int) -> str:
    return " ".join(WORDS[(number >> (3 * shift)) % 8] for shift in range(3 + number % 5))


def find_ray_workers(parent: int) -> list[int]:
    """Return the processes of Ray that answer parts, below a command."""
    parents, workers = dict[int, int](), list[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
            if b"RayWorker" in (folder / "cmdline").read_bytes():
                workers.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [worker for worker in workers if parents.get(parents[worker]) == parent]


def kill_ray_worker(process: subprocess.Popen[bytes]) -> None:
    os.kill(find_ray_workers(process.pid)[0], signal.SIGKILL)


def finished_parts(output: Path) -> dict[str, tuple[int, int]]:
    """Return the number and the time of writing of each finished part."""
    parts = dict[str, tuple[int, int]]()
    for path in output.glob(".regard/parts/*/0*-*"):
        status = path.stat()
        parts[path.name] = (status.st_ino, status.st_mtime_ns)
    return parts


def predict(
    folder: Path, output: Path, words: tuple[str, ...], parts: int, stop: Stop | None
) -> int:
    """Run the command, stop it in its middle, and return its exit code."""
    command = [sys.executable, "-m", "regard", "predict", "run", "--input", "in.jsonl"]
    process = subprocess.Popen(
        [*command, "--output", output.name, *words], cwd=folder, start_new_session=True
    )
    while stop and process.poll() is None:
        if len(finished_parts(output)) >= stop.share * parts:
            stop.act(process)
            break
        time.sleep(0.02)
    return process.wait()


def wait_for_orphans() -> None:
    """Wait until all processes that a killed command has left are gone."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def check_way(
    folder: Path, name: str, words: tuple[str, ...], parts: int, stops: list[Stop]
) -> bool:
    """Predict the file in one way, print a row, and return whether all is right."""
    output, before = folder / name.replace(" ", "-"), resource.getrusage(resource.RUSAGE_CHILDREN)
    kept, repeated, codes, left = dict[str, tuple[int, int]](), 0, list[int](), list[int]()
    for stop in [*stops, None]:
        codes.append(predict(folder, output, words, parts, stop))
        wait_for_orphans()
        if codes[-1] != 0:
            now = finished_parts(output)
            repeated += sum(now.get(part) != status for part, status in kept.items())
            kept = now
            left.append(len(kept))
        elif stop:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    text = (output / "in.jsonl").read_bytes()
    ids = [json.loads(line)["id"] for line in text.splitlines()]
    is_equal = text == (folder / "alone" / "in.jsonl").read_bytes()
    is_right = is_equal and ids == list(range(len(ids))) and codes[-1] == 0
    print(
        f"| {name} | {len(ids):,} | {', '.join(map(str, codes))} | "
        f"{', '.join(map(str, left)) or 'none'} of {parts} | {repeated} | {seconds:.0f} | "
        f"{'equal' if is_right else 'NOT EQUAL'} |",
        flush=True,
    )
    return is_right and not repeated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=100_000)
    count = parser.parse_args().lines
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parts, is_right = -(-count // 2048), True
    ways: dict[str, tuple[tuple[str, ...], list[Stop]]] = {
        "alone": (("--workers", "1"), []),
        "ray": (RAY, [Stop(1 / 3, kill_ray_worker)]),
        "processes": (
            ("--workers", "2"),
            [Stop(1 / 3, lambda p: p.send_signal(signal.SIGINT)), Stop(2 / 3, lambda p: p.kill())],
        ),
        "ray again": (RAY, [Stop(1 / 2, lambda p: p.kill())]),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        regard.fit(
            "classify",
            [{"text": f"a {word} film", "label": word} for word in WORDS] * 8,
            {"kind": "bert", "dim": 8, "heads": 2, "layers": 1},
            steps=20,
            folder=folder / "run",
            progress=False,
        )
        with (folder / "in.jsonl").open("w") as file:
            file.writelines(
                f"{json.dumps({'id': n, 'text': line_text(n)})}\n" for n in range(count)
            )
        print("| way | rows | exit codes | finished at each stop | written again | CPU s | text |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for way, (words, stops) in ways.items():
            is_right &= check_way(folder, way, words, parts, stops)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
