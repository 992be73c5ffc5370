"""Flip single bits of three runs: is each one noticed, or without effect?

    python benchmarks/flips.py [--flips 500] [--seed 0]

A bit of a random file of a run is flipped. The flip is detected if loading the run, its newest
checkpoint or its log, or resuming its training, reports the file in one line. It is harmless if
the predictions and the resumed training are the same; that is allowed for logs and pictures only.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch

import regard
from regard.errors import InputError
from regard.run import Run
from regard.training.checkpoint import checkpoint_folders, load_checkpoint
from regard.training.log import read_log
from regard.training.trainer import Trainer

HARMLESS = ("log.jsonl", "log.csv", "loss.png")
TEXTS = ["one two", "two one three", "three", "one", "two two", "three one", "one three two", "two"]


def fit_runs(place: Path) -> list[Path]:
    """Train three small runs: on synthetic data, on records, and on images."""
    train = {"examples_per_batch": 4, "save_every": 2, "validate_every": 2, "keep_finished": True}
    dates = {"kind": "dates", "size": 20, "held_out": 4}
    records = [{"text": text, "label": "ab"[i % 2]} for i, text in enumerate(TEXTS)]
    shapes = {"kind": "shapes", "size": 12, "held_out": 4, "side": 16}
    small = {"dim": 8, "hidden_dim": 8}
    vit = {"kind": "vit", "patch_size": 8, "dim": 8, "heads": 2, "layers": 1}
    jobs: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
        ("translate", dates, {"kind": "rnnsearch", **small}, {"decode": {"kind": "greedy"}}),
        ("classify", records, {"kind": "birnn", **small}, {"text": {"kind": "words"}}),
        ("image", shapes, vit, {"image": {"size": (16, 16)}}),
    ]
    for task, data, model, settings in jobs:
        tables = {**settings, "train": train}
        regard.fit(task, data, model, steps=5, folder=place / task, settings=tables, progress=False)
    return [place / task for task, *_ in jobs]


def answers(run: Run) -> list[object]:
    records = run.read_split("train")[:4]
    return [prediction.as_dict() for prediction in run.predict(records)]


def examine(folder: Path, expected: list[object]) -> list[str]:
    """Use a run in every way; return the messages, and the word DIFFERENT for other answers."""
    messages: list[str] = []
    settings = None
    try:
        run = Run.load(folder)
        settings = run.settings
        if answers(run) != expected:
            messages.append("DIFFERENT")
        read_log(folder)
    except InputError as error:
        messages.append(str(error))
    for checkpoint in checkpoint_folders(folder / "checkpoints"):
        try:
            load_checkpoint(checkpoint)
        except InputError as error:
            messages.append(str(error))
    if settings is not None:
        try:
            Trainer(settings, folder, messages.append).lock.release()
        except InputError as error:
            messages.append(str(error))
    return messages


def judge(path: Path, messages: list[str]) -> str:
    if "DIFFERENT" in messages:
        return "MISSED"
    if any("\n" in message for message in messages):
        return "SEVERAL LINES"
    # data that `regard.fit` has copied are one entry of the manifest
    name = str(path.parent if path.parent.name == "data" else path)
    if any(name in message for message in messages):
        return "detected"
    return "harmless" if path.name in HARMLESS else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng, counts = random.Random(arguments.seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folders = fit_runs(Path(name))
        expected = {folder: answers(Run.load(folder)) for folder in folders}
        files = {f: sorted(path for path in f.rglob("*") if path.is_file()) for f in folders}
        for _ in range(arguments.flips):
            folder = rng.choice(folders)
            path = rng.choice(files[folder])
            contents = {file: file.read_bytes() for file in files[folder]}
            damaged = bytearray(contents[path])
            bit = rng.randrange(8 * len(damaged))
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            messages = examine(folder, expected[folder])
            verdict = judge(path, messages)
            counts[verdict] += 1
            if verdict not in ("detected", "harmless"):
                print(f"{verdict}: bit {bit} of {path.relative_to(name)}: {messages}", flush=True)
            for file, data in contents.items():
                if file.read_bytes() != data:
                    file.write_bytes(data)
        count = sum(len(paths) for paths in files.values())
    results = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))
    print(f"{arguments.flips} flips in {count} files of {len(folders)} runs: {results}")
    sys.exit(not set(counts) <= {"detected", "harmless"})


if __name__ == "__main__":
    main()
