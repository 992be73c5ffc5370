"""Train on several processes: are the losses equal, does a killed process matter, what is saved?

    python benchmarks/distributed.py equal [--steps 200] [--kinds transformer,bert]
    python benchmarks/distributed.py kill [--kills 20] [--steps 60] [--seed 0]
    python benchmarks/distributed.py memory [--steps 6]

`equal` trains four models on one, two and four processes, and prints the largest differences of
losses and final weights. `kill` ends one of four processes by SIGKILL at random times; the training
must go on by itself and end with the files of one that was left alone. `memory` prints the resident
memory of each process with train.sharding = "full", and compares predictions.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from kill import digests, logged_steps, print_differences, sentences
from safetensors.torch import load_file

from regard.config.dump import dumps
from regard.tasks.load import resolve_settings
from regard.training.fit import data_table

PROCESSES = (1, 2, 4)
LOSS_LIMIT, WEIGHT_LIMIT = 1e-5, 1e-4


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


def check_equal(place: Path, name: str, steps: int) -> bool:
    """Train on one, two and four processes, and print the differences."""
    # Adam divides by the size of a gradient: with a tiny epsilon, rounding errors of gradients that
    # should be 0, such as those of the biases of keys, become whole steps.
    optimizer = {"kind": "adam", "eps": 1e-6}
    train_table = {"steps": steps, "validate_every": steps, "learning_rate": 3e-4}
    write_config(place, name, {**train_table, "optimizer": optimizer})
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


def children(process: int) -> list[int]:
    """Return the processes that a process has started, workers only."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    is_worker = "regard.cli.train_worker"
    return [
        int(child)
        for child in found
        if is_worker in Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
    ]


def check_kills(place: Path, kills: int, steps: int, seed: int) -> bool:
    """Kill one of four processes at random times; compare the files with those left alone."""
    rng, done, training, is_right = random.Random(seed), 0, 0, True
    train_table = {"steps": steps, "save_every": 5, "validate_every": 10, "keep_finished": True}
    write_config(place, "transformer", {**train_table, "examples_per_batch": 8})
    start_time = time.monotonic()
    train(place, "transformer", "alone", 4)
    seconds, expected = time.monotonic() - start_time, digests(place / "alone")
    while done < kills:
        training += 1
        run = f"killed-{training}"
        launcher, count = start(place, "transformer", run, 4), 0
        while launcher.poll() is None and count < 5 and done < kills:
            is_early = rng.random() < 0.2
            target = logged_steps(place / run) + rng.randrange(1, 1 + steps // 5)
            wait_until = time.monotonic() + rng.uniform(0, seconds / 2)
            while launcher.poll() is None:
                if is_early and time.monotonic() > wait_until:
                    break
                if not is_early and logged_steps(place / run) >= target:
                    break
                time.sleep(0.01)
            workers = children(launcher.pid) if launcher.poll() is None else []
            if len(workers) == 4:
                os.kill(rng.choice(workers), signal.SIGKILL)
                count, done = count + 1, done + 1
            time.sleep(rng.uniform(0, 2))
        code = launcher.wait()
        equal = not code and not print_differences(expected, digests(place / run))
        is_right &= equal
        print(f"{run}: {count} kills, exit code {code}, files {'equal' if equal else 'DIFFER'}")
        if code:
            print((place / f"{run}.txt").read_text()[-3000:])
        sys.stdout.flush()
    print(f"{done} kills of one of 4 processes; {'all files are equal' if is_right else 'FAILED'}")
    return is_right


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("equal", "kill", "memory"))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="transformer,rnnsearch,bert,gpt2")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if arguments.what == "kill":
            is_right = check_kills(place, arguments.kills, arguments.steps or 60, arguments.seed)
        else:
            names = arguments.kinds.split(",")
            results = [check_equal(place, name, arguments.steps or 200) for name in names]
            is_right = all(results)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
