"""Do models look where they should? Planted alignments, and every way of Luong et al. to attend.

    python benchmarks/reorder.py [--orders far same] [--models "dot" "local_p general"] [--seed 1]

Prints, for each order and model: exact match on unseen sentences, the alignment error rate of the
greatest weights against the planted links, and the CPU seconds of training on one thread.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from regard.config.settings import Settings
from regard.metrics.translation import exact_match
from regard.run import Run
from regard.tasks.alignment import alignment_error, gold_from_records
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

LUONG = {"kind": "luong", "dim": 32, "hidden_dim": 64, "layers": 1, "init": "scaled"}
LUONG |= {"reverse": False, "max_positions": 32, "radius": 2}
MODELS: dict[str, dict[str, Any]] = {
    "general": LUONG | {"score": "general"},
    "local_m general": LUONG | {"score": "general", "window": "local_m"},
    "local_p general": LUONG | {"score": "general", "window": "local_p"},
    "dot": LUONG | {"score": "dot"},
    "additive": LUONG | {"score": "additive"},
    "location": LUONG | {"score": "location"},
    "scaled_dot": LUONG | {"score": "scaled_dot"},
    "rnnsearch": {"kind": "rnnsearch", "dim": 32, "hidden_dim": 64, "init": "scaled"},
    "transformer": {"kind": "transformer", "dim": 64, "heads": 1, "layers": 2, "dropout": 0.0},
    "encdec": {"kind": "encdec", "dim": 32, "hidden_dim": 64, "init": "scaled"},
}


def settings(model: dict[str, Any], order: str, steps: int, seed: int) -> Settings:
    return resolve_settings(
        {
            "seed": seed,
            "data": {"kind": "reorder", "order": order, "vocabulary_size": 20, "size": 10_000},
            "text": {"kind": "words"},
            "model": model,
            "train": {
                "steps": steps,
                "examples_per_batch": 64,
                "learning_rate": 2e-3 if model["kind"] == "transformer" else 5e-3,
                "schedule": {"kind": "cosine", "warmup": 50},
                "validate_every": 1_000_000,
                "save_every": 1_000_000,
            },
            "decode": {"kind": "greedy"},
        }
    )


def row(
    model: dict[str, Any], order: str, steps: int, seed: int
) -> tuple[float, float | None, float]:
    """Exact match in percent, AER, and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        fit = Trainer(settings(model, order, steps, seed), Path(folder))
        start = time.process_time()
        for _ in fit:
            pass
        seconds = time.process_time() - start
        run = Run.load(folder)
        records = list(run.corpus().read("test"))
        aer = alignment_error(run.task.aligner(), gold_from_records(records))
        outputs = [prediction.text for prediction in run.predict(records)]
        return exact_match(outputs, [r["target"] for r in records]), aer, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", nargs="+", default=["far", "same"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'order':6} {'model':16} {'exact %':>8} {'AER':>6} {'CPU s':>8}")
    for order in given.orders:
        for name in given.models:
            exact, aer, seconds = row(MODELS[name], order, given.steps, given.seed)
            shown = "-" if aer is None else f"{aer:.3f}"
            print(f"{order:6} {name:16} {exact:8.1f} {shown:>6} {seconds:8.0f}", flush=True)


if __name__ == "__main__":
    main()
