"""Call one run from many threads: are the answers those of one thread?

    python benchmarks/threads.py [--threads 16] [--calls 200] [--kinds rnnsearch,tag]

The eight kinds of run of `benchmarks/kill.py` are trained for a few steps. Then every thread makes
its calls on the same run, mixed: predictions, attention maps, and predictions with edited
attention. Each answer is compared, bit by bit, with that of a single thread. Exits with 1 if one
differs.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from kill import kinds, write_config

from regard.attention.observe import intervene, named_attentions, zero
from regard.data.corpus import Record
from regard.run import Run
from regard.tasks.load import load_settings
from regard.training.trainer import Trainer

STEPS, RECORDS = 10, 6


def train_run(place: Path, name: str) -> Run:
    write_config(place, name, kinds()[name], STEPS)
    for _ in Trainer(load_settings(place / f"{name}.toml"), place / name, lambda _: None):
        pass
    run = Run.load(place / name)
    run.model.eval()
    return run


def first_records(run: Run) -> list[Record]:
    """Return records of the first split that the data has."""
    splits = run.corpus().splits
    return run.read_split(next(s for s in ("test", "dev", "train") if s in splits))[:RECORDS]


def answer(run: Run, records: list[Record], number: int) -> object:
    """Predict, look, or predict with edited attention, by the number of the call."""
    record = records[number // 3 % len(records)]
    match number % 3 if run.task.has_attention() else 0:
        case 1:
            return [layer.weights.tolist() for layer in run.attention(record).layers]
        case 2:
            with intervene(run.model, dict.fromkeys(named_attentions(run.model), zero())):
                return [p.as_dict() for p in run.predict([record])]
        case _:
            return [p.as_dict() for p in run.predict([record])]


def check_kind(place: Path, name: str, threads: int, calls: int) -> bool:
    """Compare the answers of many threads with those of one; return whether all are equal."""
    run = train_run(place, name)
    records = first_records(run)
    expected = [answer(run, records, number) for number in range(3 * len(records))]
    start = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        numbers = [
            (thread + call) % len(expected) for thread in range(threads) for call in range(calls)
        ]
        answers = pool.map(lambda number: answer(run, records, number), numbers)
        different = sum(a != expected[n] for a, n in zip(answers, numbers, strict=True))
    seconds = time.monotonic() - start
    print(
        f"{name}: {len(numbers)} calls of {threads} threads in {seconds:.0f} s: {different} differ"
    )
    return not different


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--calls", type=int, default=200, help="Calls of each thread.")
    parser.add_argument("--kinds", default=",".join(kinds()))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        names = options.kinds.split(",")
        is_right = [
            check_kind(Path(folder), name, options.threads, options.calls) for name in names
        ]
    sys.exit(not all(is_right))


if __name__ == "__main__":
    main()
