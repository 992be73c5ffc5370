"""Kill a training again and again: does it end as if nobody had?

    python benchmarks/kill.py [--kills 20] [--steps 400] [--seed 0]

`regard train` on dates, three times in processes of their own, on one thread: once in peace; once
killed (SIGKILL) at random moments, from before its first step on, and started anew by the same
command; then one byte of the newest checkpoint is flipped and the command is given once more. Every
file of the folders is compared by its SHA-256. Exits with 1 where one differs.
"""

import argparse
import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CONFIG = """
[data]
kind = "dates"
size = 2000
held_out = 100
[model]
kind = "rnnsearch"
dim = 16
dropout = 0.1
[train]
steps = {steps}
examples_per_batch = 16
save_every = 4
validate_every = 10
keep_checkpoints = 3
[decode]
kind = "greedy"
"""


def started(place: Path, run: str) -> "subprocess.Popen[str]":
    words = ["train", "config.toml", "--run", run, "--threads", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "regard", *words],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> str:
    """What it said, if it ended well."""
    _, said = process.communicate()
    if process.returncode:
        sys.exit(f"regard train ended with {process.returncode}: {said}")
    return said


def in_peace(place: Path, run: str) -> tuple[float, float]:
    """Seconds until the first step was done, and until the end."""
    begun, process = time.monotonic(), started(place, run)
    log = place / run / "log.jsonl"
    while process.poll() is None and not (log.exists() and log.stat().st_size):
        time.sleep(0.01)
    first = time.monotonic() - begun
    ended(process)
    return first, time.monotonic() - begun


class Moment(NamedTuple):
    """When to kill: so many seconds after the process began, or after a step was in the log."""

    step: int | None
    seconds: float


def moments(kills: int, steps: int, first: float, draw: random.Random) -> list[Moment]:
    """Every fourth before the first step is likely to be made; the others all over the training."""
    early = kills // 4
    later = sorted(draw.randrange(1, steps - 1) for _ in range(kills - early))
    found = [Moment(step, draw.uniform(0, 0.2)) for step in later]
    for _ in range(early):
        found.insert(draw.randrange(len(found)), Moment(None, draw.uniform(0.1, first)))
    return found


def killed(place: Path, run: str, when: Sequence[Moment]) -> list[int]:
    """The steps in the log at each kill; then the training is let go on to its end."""
    steps: list[int] = []
    for moment in when:
        process = started(place, run)
        while moment.step is not None and process.poll() is None:
            if logged(place / run) >= moment.step:
                break
            time.sleep(0.005)
        time.sleep(moment.seconds)
        process.kill()
        process.communicate()
        if process.returncode != -signal.SIGKILL:
            break
        steps.append(logged(place / run))
    ended(started(place, run))
    return steps


def logged(run: Path) -> int:
    log = run / "log.jsonl"
    return log.read_text().count('"kind": "step"') if log.exists() else 0


def sums(run: Path) -> dict[str, str]:
    """SHA-256 of each file; of the log without the seconds that steps took.

    What is made from the log, a sheet and a picture, is left out.
    """
    found = {}
    for path in sorted(path for path in run.rglob("*") if path.is_file()):
        if path.name in ("log.csv", "loss.png"):
            continue
        data = path.read_bytes()
        if path.name == "log.jsonl":
            rows = [json.loads(line) for line in data.splitlines()]
            data = json.dumps([{**row, "seconds": 0} for row in rows]).encode()
        found[str(path.relative_to(run))] = hashlib.sha256(data).hexdigest()
    return found


def compared(one: dict[str, str], other: dict[str, str]) -> bool:
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            print(f"  {name} DIFFERS: {one.get(name)} {other.get(name)}")
    weights = one["weights.safetensors"]
    print(f"  {len(one)} files compared; weights.safetensors has sha256 {weights[:16]}…")
    return one == other


def flipped(run: Path, draw: random.Random) -> str:
    """Damage one bit of the newest checkpoint."""
    newest = max((run / "checkpoints").iterdir())
    file = draw.choice(sorted(newest.iterdir()))
    data = bytearray(file.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    file.write_bytes(data)
    return str(file.relative_to(run))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "config.toml").write_text(CONFIG.format(steps=given.steps))
        first, whole = in_peace(place, "whole")
        print(f"in peace: first step after {first:.1f} s, {given.steps} steps in {whole:.1f} s")
        when = moments(given.kills, given.steps, first, draw)
        steps = killed(place, "parts", when)
        print(f"killed {len(steps)} times, with so many steps in the log: {steps}")
        fine = compared(sums(place / "whole"), sums(place / "parts"))
        damaged = flipped(place / "parts", draw)
        told = [line for line in ended(started(place, "parts")).splitlines() if damaged in line]
        print(f"one bit of {damaged} flipped; told in {len(told)} line: {told}")
        fine &= len(told) == 1 and compared(sums(place / "whole"), sums(place / "parts"))
    print("all the same" if fine and len(steps) == given.kills else "NOT as it should be")
    sys.exit(not (fine and len(steps) == given.kills))


if __name__ == "__main__":
    main()
