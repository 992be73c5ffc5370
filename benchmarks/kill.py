"""Kill trainings at random times: do they end with the bytes of a training that was left alone?

    python benchmarks/kill.py [--kills 200] [--steps 60] [--seed 0] [--kinds rnnsearch,rnnlm]

Eight kinds of run are trained by `regard train`, each in a process of its own with one thread.
SIGKILL, SIGTERM, SIGHUP or SIGINT stops the process at a random time, from before the first step
on, and the same command starts it again. At the end, every file of the folder is compared with
those of a training that was not stopped. Then one bit of the newest checkpoint is flipped and the
command is given once more; two kinds keep no checkpoints. Exits with 1 if a file or an exit code
differs.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from regard.cli.app import main as run_command
from regard.config.dump import dumps
from regard.run import Run  # noqa: F401 (imports torch before the processes are forked)
from regard.tasks.load import resolve_settings
from regard.training.fit import data_table
from regard.training.progress import train_with_progress  # noqa: F401

WORDS = ("ann", "bob", "cat", "dog", "eve", "fox", "gin", "hat", "ink", "jar")
STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
SIGNALS = (signal.SIGKILL, *STOP_SIGNALS)
KILLS_PER_TRAINING = 10
NOT_COMPARED = ("log.csv", "loss.png")  # made from log.jsonl, with the seconds of each step


def sentences(count: int) -> list[str]:
    return [" ".join(WORDS[(i * j + i) % 10] for j in range(1, 4 + i % 5)) for i in range(count)]


def kinds() -> dict[str, dict[str, Any]]:
    """Return the settings of each kind of run; `data` may be a list of records."""
    texts = sentences(80)
    dates = {"kind": "dates", "size": 400, "held_out": 20}
    labels = [("even", "odd")[len(text.split()) % 2] for text in texts]
    tagged = [{"tokens": t.split(), "tags": ["O"] * (len(t.split()) - 1) + ["B-X"]} for t in texts]
    bits = {"kind": "copy", "size": 40, "held_out": 4, "width": 3, "max_vectors": 3}
    return {
        "rnnsearch": {
            "data": dates,
            "model": {"kind": "rnnsearch", "dim": 16, "dropout": 0.1},
            "train": {"metric": "exact"},
            "decode": {"kind": "greedy", "max_length": 12},
        },
        "transformer": {
            "data": dates,
            "model": {"kind": "transformer", "dim": 16, "heads": 2, "layers": 1, "dropout": 0.1},
            "train": {"ema": 0.9, "average_checkpoints": 2, "accumulate": 2},
        },
        "rnnlm": {
            "task": "language",
            "data": [{"text": text} for text in texts],
            "model": {"kind": "rnnlm", "dim": 8, "hidden_dim": 8},
            "train": {"context_length": 8},
        },
        "classify": {
            "task": "classify",
            "data": [{"text": t, "label": label} for t, label in zip(texts, labels, strict=True)],
            "model": {"kind": "birnn", "dim": 8, "hidden_dim": 8},
            "text": {"kind": "words"},
            "train": {"metric": "accuracy", "schedule": {"kind": "plateau", "patience": 0}},
        },
        "tag": {
            "task": "tag",
            "data": tagged,
            "model": {"kind": "bilstm_crf", "dim": 8, "hidden_dim": 8},
        },
        "vit": {
            "task": "image",
            "data": {"kind": "shapes", "size": 60, "held_out": 8, "side": 16},
            "model": {"kind": "vit", "patch_size": 8, "dim": 8, "heads": 2, "layers": 1},
            "image": {"size": (16, 16)},
        },
        "ntm": {
            "task": "copy",
            "data": {**bits, "test_sizes": [3]},
            "model": {"kind": "ntm", "dim": 8, "slots": 10, "slot_dim": 4},
        },
        "bandit": {
            "task": "bandit",
            "model": {"kind": "snail", "blocks": ["A(4, 4)", "TC(4)", "A(4, 4)"]},
            "train": {"learning_rate": 1e-4},
        },
    }


def write_config(place: Path, name: str, values: dict[str, Any], steps: int) -> None:
    values = {"task": "translate", **values}
    if isinstance(values.get("data"), list):
        data = {"train": values["data"], "dev": values["data"][:10]}
        values["data"] = data_table(values["task"], data, place / "data" / name)
    schedule: dict[str, Any] = {"steps": steps, "save_every": 4, "validate_every": 5}
    schedule |= {"keep_checkpoints": 3, "keep_finished": name not in ("vit", "ntm")}
    batch = {} if name == "bandit" else {"examples_per_batch": 8}
    values["train"] = {**schedule, **batch, **values.get("train", {})}
    (place / f"{name}.toml").write_text(dumps(resolve_settings(values)))


def start(place: Path, name: str, run: str) -> int:
    """Start `regard train` in a new process, and return its number."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    process = os.fork()
    if not process:
        os._exit(train_in_child(place, name, run))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    return process


def train_in_child(place: Path, name: str, run: str) -> int:
    """Run the command with the signals of a new program, and return its exit code."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(place)
        output = os.open(f"{run}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        run_command(["train", f"{name}.toml", "--run", run, "--threads", "1"])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:  # before or after the command itself
        return 130


def wait(process: int) -> int:
    """Return the exit code of a process; a signal that ended it has a negative number."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def has_ended(process: int) -> bool:
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def logged_steps(run: Path) -> int:
    log = run / "log.jsonl"
    return log.read_bytes().count(b'"kind": "step"') if log.exists() else 0


def train_to_the_end(place: Path, name: str, run: str) -> float:
    start_time = time.monotonic()
    if code := wait(start(place, name, run)):
        sys.exit(f"{name}: exit code {code}: {(place / f'{run}.txt').read_text()[-2000:]}")
    return time.monotonic() - start_time


class Kill(NamedTuple):
    """A signal, some seconds after the start of the process or after a step in the log."""

    number: signal.Signals
    step: int | None
    seconds: float


def draw_kills(count: int, steps: int, seconds: float, rng: random.Random) -> list[Kill]:
    """Draw kills all over the training; every fifth is likely to come before the first step."""
    kills = [
        Kill(rng.choice(SIGNALS), step, rng.uniform(0, 0.05))
        for step in sorted(rng.randrange(steps - 2) for _ in range(count))
    ]
    return [
        kill if rng.randrange(5) else kill._replace(step=None, seconds=rng.uniform(0, seconds / 2))
        for kill in kills
    ]


def kill_training(place: Path, name: str, run: str, kill: Kill) -> int | None:
    """Start the training, kill it, and return its exit code; None if it had ended before."""
    process = start(place, name, run)
    while kill.step is not None and not has_ended(process):
        if logged_steps(place / run) > kill.step:
            break
        time.sleep(0.002)
    time.sleep(kill.seconds)
    os.kill(process, kill.number)
    code = wait(process)
    return code or None


def expected_codes(number: signal.Signals) -> set[int]:
    """A signal that comes before the training begins ends the process by itself."""
    return {-number} if number == signal.SIGKILL else {-number, 128 + number}


def digests(run: Path) -> dict[str, str]:
    """Return the SHA-256 of each file; that of the log without the seconds of each step."""
    result: dict[str, str] = {}
    for path in sorted(path for path in run.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.name in NOT_COMPARED:
            continue
        if path.name == "log.jsonl":
            rows = [json.loads(line) for line in data.splitlines()]
            data = json.dumps([{**row, "seconds": 0} for row in rows]).encode()
        result[str(path.relative_to(run))] = hashlib.sha256(data).hexdigest()
    return result


def print_differences(expected: dict[str, str], actual: dict[str, str]) -> bool:
    names = [n for n in sorted({*expected, *actual}) if expected.get(n) != actual.get(n)]
    for name in names:
        print(f"  {name} DIFFERS: {expected.get(name)} {actual.get(name)}")
    return bool(names)


def flip_bit(run: Path, rng: random.Random) -> Path:
    """Damage one bit of the newest checkpoint, and return its file."""
    newest = max((run / "checkpoints").iterdir())
    file = rng.choice(sorted(newest.iterdir()))
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)
    return file


def check_kind(place: Path, name: str, kills: int, steps: int, rng: random.Random) -> bool:
    """Train one kind of run with kills, and return whether all is as without them."""
    seconds = train_to_the_end(place, name, f"{name}-alone")
    expected, is_right = digests(place / f"{name}-alone"), True
    counts: Counter[str] = Counter()
    training, run = 0, ""
    while counts.total() < kills:
        training += 1
        run = f"{name}-{training}"
        count = min(KILLS_PER_TRAINING, kills - counts.total())
        for kill in draw_kills(count, steps, seconds, rng):
            code = kill_training(place, name, run, kill)
            if code is None:
                break
            counts[kill.number.name] += 1
            if code not in expected_codes(kill.number):
                print(
                    f"  exit code {code} after {kill}: {(place / f'{run}.txt').read_text()[-900:]}"
                )
                is_right = False
        train_to_the_end(place, name, run)
        is_right &= not print_differences(expected, digests(place / run))
    if (place / run / "checkpoints").is_dir() and any((place / run / "checkpoints").iterdir()):
        is_right &= check_flipped_bit(place, name, run, rng, expected)
    signals = ", ".join(f"{count} {number}" for number, count in sorted(counts.items()))
    print(
        f"{name}: {counts.total()} kills ({signals}) in {training} trainings of {steps} steps; "
        f"{len(expected)} files; {'equal' if is_right else 'NOT EQUAL'}",
        flush=True,
    )
    return is_right


def check_flipped_bit(
    place: Path, name: str, run: str, rng: random.Random, expected: dict[str, str]
) -> bool:
    """Return whether a flipped bit is reported in one line, and the training ends the same."""
    damaged = flip_bit(place / run, rng).relative_to(place)
    (place / f"{run}.txt").write_text("")
    train_to_the_end(place, name, run)
    reports = [
        line for line in (place / f"{run}.txt").read_text().splitlines() if str(damaged) in line
    ]
    return len(reports) == 1 and not print_differences(expected, digests(place / run))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(kinds()))
    arguments = parser.parse_args()
    names, rng, is_right = arguments.kinds.split(","), random.Random(arguments.seed), True
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for index, name in enumerate(names):
            write_config(place, name, kinds()[name], arguments.steps)
            share = arguments.kills * (index + 1) // len(names) - arguments.kills * index // len(
                names
            )
            is_right &= check_kind(place, name, share, arguments.steps, rng)
    print(f"{arguments.kills} kills: {'all files are equal' if is_right else 'FAILED'}")
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
