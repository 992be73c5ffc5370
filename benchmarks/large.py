"""How much memory two gigabytes of data take in training, beside a small file.

    python benchmarks/large.py [--megabytes 2000] [--steps 20] [--seed 0]

Writes a TSV of made-up sentences into a temporary folder (which is removed), runs `regard train` on
it and on its first lines, each in a process of its own, and prints the peak of their resident
memory (ru_maxrss) and the seconds until the first step was done. Both have a vocabulary of the same
size and the same model, so that the difference is the data's.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

CONFIG = """
[data]
kind = "files"
train = "{train}"
[text]
kind = "bpe"
size = 2000
[model]
kind = "transformer"
dim = 64
layers = 2
heads = 4
[train]
steps = {steps}
tokens_per_batch = 2000
save_every = 1000
"""
WORDS, SENTENCES, SMALL = 500_000, 200_000, 20_000
LIMIT = 600  # MB of difference


def written(path: Path, megabytes: int, draw: random.Random) -> int:
    """Words by Zipf's law; sentences are made once, and paired anew for every line."""
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = ["".join(draw.choices(letters, k=draw.randint(1, 9))) for _ in range(WORDS)]
    odds = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    sentences = [
        " ".join(draw.choices(words, cum_weights=odds, k=draw.randint(3, 25)))
        for _ in range(SENTENCES)
    ]
    lines, left = 0, megabytes * 10**6
    with path.open("w", encoding="utf-8") as file:
        while left > 0:
            sources, targets = draw.choices(sentences, k=10_000), draw.choices(sentences, k=10_000)
            block = "".join(f"{s}\t{t}\n" for s, t in zip(sources, targets, strict=True))
            file.write(block)
            left, lines = left - len(block), lines + 10_000
    return lines


def trained(place: Path, train: str, steps: int) -> tuple[float, float]:
    """Megabytes at the peak, and seconds until the first step was done."""
    (place / f"{train}.toml").write_text(CONFIG.format(train=train, steps=steps))
    words = ["train", f"{train}.toml", "--threads", "1"]
    log, begun, first = (
        place / "runs" / Path(f"{train}.toml").stem / "log.jsonl",
        time.monotonic(),
        0.0,
    )
    process = subprocess.Popen([sys.executable, "-m", "regard", *words], cwd=place)
    while True:
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if not first and log.exists() and log.stat().st_size:
            first = time.monotonic() - begun
        if done:
            break
        time.sleep(0.05)
    if status:
        sys.exit(f"regard train ended with {status}")
    return usage.ru_maxrss * 1024 / 1e6, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if shutil.disk_usage(place).free < 2 * given.megabytes * 10**6:
            sys.exit(f"{place}: less than twice {given.megabytes} MB are free")
        large, small = place / "large.tsv", place / "small.tsv"
        lines = written(large, given.megabytes, random.Random(given.seed))
        with large.open(encoding="utf-8") as file:
            small.write_text("".join(next(file) for _ in range(min(lines, SMALL))))
        rows = [(path, *trained(place, path.name, given.steps)) for path in (small, large)]
        for path, peak, first in rows:
            size = path.stat().st_size / 1e6
            print(f"{size:8.0f} MB of data: peak {peak:6.0f} MB, first step after {first:5.1f} s")
    more = rows[1][1] - rows[0][1]
    print(f"the difference is {more:.0f} MB; {lines:,} pairs, seed {given.seed}")
    sys.exit(more > LIMIT)


if __name__ == "__main__":
    main()
