"""Train on several processes: are the losses equal, does a killed process matter, what is saved?

    python benchmarks/distributed.py equal [--steps 200] [--kinds bert,gpt2] [--sharding full]
    python benchmarks/distributed.py kill [--kills 20] [--steps 60] [--seed 0]
    python benchmarks/distributed.py memory [--steps 6]

`equal` trains four models on one, two and four processes, and prints the largest differences of
losses and final weights. `kill` ends one of four processes by SIGKILL, in random moments: at the
start, in a step, a checkpoint, a validation and at the end. The training must go on by itself and
end with the files of one that was left alone. `memory` prints the resident memory of each process
with train.sharding = "full", and compares predictions.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import kill
import torch
from kill import digests, logged_steps, print_differences, sentences
from safetensors.torch import load_file

from regard.config.dump import dumps
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.fit import data_table

PROCESSES = (1, 2, 4)
LOSS_LIMIT, WEIGHT_LIMIT = 1e-5, 1e-4
MEMORY_SHARE = 0.85  # of the memory of one process, which each of two may need, with libraries
PRINT_PEAK = """
import sys
from pathlib import Path
from regard.batching.memory_forecast import peak_memory
from regard.cli.app import main

try:
    main(sys.argv[2:])
finally:
    Path(sys.argv[1]).write_text(str(peak_memory()))
"""
KILLED_PROCESSES = 4  # of which one is killed
VALIDATE_EVERY = 5  # in kill.write_config
MOMENTS = ("start-up", "step", "checkpoint", "validation", "end")
LONGEST_WAIT = {"start-up": 20.0, "step": 0.1, "checkpoint": 0.01, "validation": 0.01, "end": 0.5}


class WorkerKill(NamedTuple):
    """A moment of a training, the seconds to wait in it, and the process to kill."""

    moment: str
    step: int  # not before this one
    seconds: float
    rank: int  # position among the workers, by process number


def kinds() -> dict[str, dict[str, Any]]:
    """Return the settings of each model, without dropout."""
    texts = sentences(300)
    labels = [("even", "odd")[len(text.split()) % 2] for text in texts]
    dates = {"kind": "dates", "size": 1000, "held_out": 20}
    stack = {"dim": 32, "heads": 4, "layers": 2, "dropout": 0.0}
    return {
        "transformer": {
            "data": dates,
            "model": {"kind": "transformer", "activation": "gelu", **stack},
        },
        "rnnsearch": {
            "data": dates,
            "model": {"kind": "rnnsearch", "dim": 32, "hidden_dim": 32, "dropout": 0.0},
            # maxout has kinks, at which Adam would make whole steps of rounding errors
            "train": {"learning_rate": 0.3, "optimizer": {"kind": "sgd"}},
        },
        "bert": {
            "task": "classify",
            "data": [{"text": t, "label": label} for t, label in zip(texts, labels, strict=True)],
            "model": {"kind": "bert", **stack},
            "head": {"dropout": 0.0},
        },
        "pretrain": {
            "task": "pretrain",
            "data": [{"text": ". ".join(texts[i : i + 6]) + "."} for i in range(0, 300, 6)],
            "model": {"kind": "bert", **stack},
        },
        "gpt2": {
            "task": "language",
            "data": [{"text": text} for text in texts],
            "model": {"kind": "gpt2", **stack},
            "train": {"context_length": 16},
        },
        "large": {
            "task": "language",
            "data": [{"text": text} for text in texts],
            "model": {"kind": "gpt2", **stack, "dim": 512, "heads": 8, "layers": 12},
            "train": {"context_length": 16},
            "decode": {"kind": "greedy", "max_length": 8},
        },
    }


def write_config(place: Path, name: str, train: dict[str, Any]) -> None:
    values = {"task": "translate", **kinds()[name]}
    if isinstance(values["data"], list):
        records = {"train": values["data"], "dev": values["data"][:10]}
        values["data"] = data_table(values["task"], records, place / "data" / name)
    values["train"] = {"examples_per_batch": 16, **train, **values.get("train", {})}
    (place / f"{name}.toml").write_text(dumps(resolve_settings(values)))


def start(place: Path, name: str, run: str, processes: int) -> "subprocess.Popen[bytes]":
    """Start `regard train` with one thread for each process."""
    words = ["train", f"{name}.toml", "--run", run, "--threads", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "regard", *words, "--processes", str(processes)],
        cwd=place,
        stdout=(place / f"{run}.txt").open("ab"),
        stderr=subprocess.STDOUT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def train(place: Path, name: str, run: str, processes: int) -> None:
    if code := start(place, name, run, processes).wait():
        sys.exit(f"{run}: exit code {code}: {(place / f'{run}.txt').read_text()[-3000:]}")


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "log.jsonl").read_text().splitlines()]


def check_equal(place: Path, name: str, steps: int, sharding: str) -> bool:
    """Train on one, two and four processes, and print the differences."""
    # Adam divides by the size of a gradient: with a tiny epsilon, rounding errors of gradients that
    # should be 0, such as those of the biases of keys, become whole steps.
    optimizer = {"kind": "adam", "eps": 1e-6}
    train_table = {"steps": steps, "validate_every": steps, "learning_rate": 3e-4}
    write_config(place, name, {**train_table, "optimizer": optimizer, "sharding": sharding})
    for count in PROCESSES:
        train(place, name, f"{name}-{count}", count)
    first = place / f"{name}-1"
    weights, is_right = load_file(first / "weights.safetensors"), True
    for count in PROCESSES[1:]:
        run = place / f"{name}-{count}"
        pairs = list(zip(losses(first), losses(run), strict=True))
        loss_difference = max(abs(a - b) for a, b in pairs)
        others = load_file(run / "weights.safetensors")
        weight_difference = max(float((weights[n] - others[n]).abs().max()) for n in weights)
        is_right &= loss_difference <= LOSS_LIMIT and weight_difference <= WEIGHT_LIMIT
        print(
            f"{name}: {steps} steps, loss {pairs[0][0]:.3f} to {pairs[-2][0]:.3f}; 1 and {count} "
            f"processes differ by {loss_difference:.1e} in losses, {weight_difference:.1e} in "
            "weights",
            flush=True,
        )
    return is_right


def measure_peaks(place: Path, name: str, run: str, processes: int) -> list[int]:
    """Train on some processes, and return the most memory that each of them had."""
    words = ["train", f"{name}.toml", "--run", run, "--threads", "1"]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(listener.getsockname()[1])}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PRINT_PEAK, f"{run}-{rank}.peak", *words],
            cwd=place,
            stdout=(place / f"{run}.txt").open("ab"),
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **address}
            | ({"RANK": str(rank), "WORLD_SIZE": str(processes)} if processes > 1 else {}),
        )
        for rank in range(processes)
    ]
    codes = [rank.wait() for rank in ranks]
    if any(codes):
        sys.exit(f"{run}: failed: {(place / f'{run}.txt').read_text()[-3000:]}")
    return [int((place / f"{run}-{rank}.peak").read_text()) for rank in range(processes)]


def check_memory(place: Path, steps: int) -> bool:
    """Train a model of 38 million weights whole and sharded; compare memory and predictions."""
    table = {"steps": steps, "validate_every": steps, "keep_finished": True, "learning_rate": 1e-4}
    table |= {"optimizer": {"kind": "adam", "eps": 1e-6}, "examples_per_batch": 8}
    peaks: dict[str, list[int]] = {}
    for run, processes, sharding in (("one", 1, "none"), ("two", 2, "none"), ("full", 2, "full")):
        write_config(place, "large", {**table, "sharding": sharding})
        peaks[run] = measure_peaks(place, "large", run, processes)
        text = " and ".join(f"{peak / 2**20:,.0f}" for peak in peaks[run])
        print(f"{processes} processes, sharding {sharding}: {text} MB", flush=True)
    one, full = (Run.load(place / run) for run in ("one", "full"))
    texts = [" ".join(text.split()[:2]) for text in sentences(10)]
    pairs = zip(losses(place / "one"), losses(place / "full"), strict=True)
    differences = [abs(a - b) for a, b in pairs]
    equal = [p.text for p in one.predict(texts)] == [p.text for p in full.predict(texts)]
    print(
        f"{sum(p.numel() for p in one.model.parameters()):,} weights; losses differ by "
        f"{max(differences):.1e}; {len(texts)} predictions are {'equal' if equal else 'DIFFERENT'}"
    )
    is_smaller = max(peaks["full"]) < MEMORY_SHARE * peaks["one"][0]
    return equal and is_smaller and max(differences) <= LOSS_LIMIT


def workers(launcher: "subprocess.Popen[bytes]") -> set[int]:
    """Return the processes that train, of those that a launcher has started."""
    try:
        numbers = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        commands = {int(n): Path(f"/proc/{n}/cmdline").read_bytes() for n in numbers}
    except OSError:  # it has ended
        return set()
    return {number for number, command in commands.items() if b"train_worker" in command}


def last_row(run: Path) -> dict[str, Any]:
    """Return the last complete row of a log; an empty one before the first step."""
    lines = (run / "log.jsonl").read_bytes().split(b"\n")[:-1] if run.exists() else []
    return json.loads(lines[-1]) if lines else {}


def is_in(moment: str, run: Path, step: int) -> bool:
    """Return whether a training is in a moment of this kind, not before a step."""
    if moment == "start-up":
        return True
    if logged_steps(run) < step:
        return False
    if moment == "checkpoint":
        return any((run / "checkpoints").glob(".*.draft"))
    if moment == "validation":
        row = last_row(run)
        return row.get("kind") == "step" and row["number"] % VALIDATE_EVERY == 0
    return True


def kill_worker(
    launcher: "subprocess.Popen[bytes]", run: Path, planned: WorkerKill, dead: set[int]
) -> int | None:
    """Kill one of four workers in a moment, and return its number; None if the training ended."""
    while len(living := workers(launcher) - dead) < KILLED_PROCESSES:
        if launcher.poll() is not None:
            return None
        time.sleep(0.01)
    while not is_in(planned.moment, run, planned.step):
        if launcher.poll() is not None:
            return None
        time.sleep(0.001)
    time.sleep(planned.seconds)
    victim = sorted(living)[planned.rank]
    if launcher.poll() is not None or victim not in workers(launcher):
        return None
    os.kill(victim, signal.SIGKILL)
    dead |= living
    return victim


def draw_kills(steps: int, rng: random.Random) -> list[WorkerKill]:
    """Draw one kill in each kind of moment; that at the end comes last."""
    moments = rng.sample(MOMENTS[:-1], len(MOMENTS) - 1)
    numbers = sorted(rng.randrange(1, steps) for _ in moments)
    drawn = [*zip(moments, numbers, strict=True), (MOMENTS[-1], steps)]
    return [
        WorkerKill(
            moment, step, rng.uniform(0, LONGEST_WAIT[moment]), rng.randrange(KILLED_PROCESSES)
        )
        for moment, step in drawn
    ]


def restarts(output: Path) -> int:
    numbers = re.findall(r"all start again \(restart (\d+)\)", output.read_text())
    return max(map(int, numbers), default=0)


def check_kills(place: Path, name: str, kills: int, steps: int, seed: int) -> bool:
    """Kill one of four processes in random moments; compare the files with those left alone."""
    rng, total, training, is_right = random.Random(seed), 0, 0, True
    kill.write_config(place, name, kill.kinds()[name], steps)
    train(place, name, "alone", KILLED_PROCESSES)
    train(place, name, "alone-too", KILLED_PROCESSES)
    expected = digests(place / "alone")
    is_right &= not print_differences(expected, digests(place / "alone-too"))
    while total < kills:
        training += 1
        run, done, dead = f"killed-{training}", list[str](), set[int]()
        launcher = start(place, name, run, KILLED_PROCESSES)
        for planned in draw_kills(steps, rng)[: kills - total]:
            if kill_worker(launcher, place / run, planned, dead) is not None:
                done.append(f"{planned.moment} (rank {planned.rank})")
        code, count = launcher.wait(), restarts(place / f"{run}.txt")
        equal = not print_differences(expected, digests(place / run))
        is_right &= equal and not code and count <= len(done)
        total += count
        print(
            f"{run}: {count} restarts after {len(done)} kills: {', '.join(done)}; exit code "
            f"{code}, {len(expected)} files {'equal' if equal else 'DIFFER'}",
            flush=True,
        )
        if code:
            print((place / f"{run}.txt").read_text()[-3000:])
    print(f"{total} restarts; {'all files are equal' if is_right else 'FAILED'}")
    return is_right


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("equal", "kill", "memory"))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sharding", default="none")
    parser.add_argument("--kinds", default="transformer,rnnsearch,bert,gpt2")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if arguments.what == "memory":
            is_right = check_memory(place, arguments.steps or 6)
        elif arguments.what == "kill":
            name, steps = arguments.kinds.split(",")[0], arguments.steps or 60
            is_right = check_kills(place, name, arguments.kills, steps, arguments.seed)
        else:
            names = arguments.kinds.split(",")
            steps, sharding = arguments.steps or 200, arguments.sharding
            results = [check_equal(place, name, steps, sharding) for name in names]
            is_right = all(results)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
