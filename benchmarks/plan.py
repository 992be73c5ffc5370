"""Is the plan true? Memory and time of `regard plan --measure` beside those of a training.

    python benchmarks/plan.py [--steps 100] [--models gpt2 …]

Each plan and each training is a process of its own, one after the other. Memory is the growth of
the process over what it was before the first step, at its peak. The time is that of all steps, by
the clock and of the CPU; on a busy machine, only that of the CPU can be compared, and only with one
thread (OMP_NUM_THREADS=1), because threads that wait for others spin.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORDS, SENTENCES = 2000, 800
PAIRS = '[data]\nkind = "files"\ntrain = "pairs.tsv"\n[text]\nkind = "words"\n'
TEXT = '[data]\nkind = "text"\ntrain = "text.txt"\n[text]\nkind = "words"\n'
DOCUMENTS = (
    '[data]\nkind = "text"\ntrain = "text.txt"\nunit = "paragraph"\n[text]\nkind = "wordpiece"\n'
)
CONFIGS = {
    "transformer": PAIRS + '[model]\nkind = "transformer"\ndim = 64\nheads = 4\nlayers = 3\n'
    "[train]\ntokens_per_batch = 1024\n",
    "rnnsearch": PAIRS
    + '[model]\nkind = "rnnsearch"\ndim = 64\n[train]\ntokens_per_batch = 1024\n',
    "gpt2": 'task = "language"\n' + TEXT + '[model]\nkind = "gpt2"\ndim = 64\nheads = 4\n'
    "layers = 4\n[train]\ntokens_per_batch = 1024\ncontext_length = 128\n",
    "bert": 'task = "pretrain"\n' + DOCUMENTS + '[model]\nkind = "bert"\ndim = 64\nheads = 4\n'
    "layers = 4\n[train]\nexamples_per_batch = 8\nmax_tokens = 128\n",
    "vit": 'task = "image"\n[data]\nkind = "shapes"\n[model]\nkind = "vit"\ndim = 64\nheads = 4\n'
    "layers = 3\n[train]\nexamples_per_batch = 32\n",
    "ntm": 'task = "copy"\n[model]\nkind = "ntm"\n[train]\nexamples_per_batch = 32\n',
}
TRAINING = """
import json, sys, time, torch
from pathlib import Path
from regard.batching.memory_forecast import peak_memory, resident_memory
from regard.tasks.load import load_settings
from regard.training.prepare import create_run, prepare_training
run, corpus = create_run(load_settings(Path(sys.argv[1]), sys.argv[2:]))
training = prepare_training(run, corpus)
torch.manual_seed(1)
base = resident_memory() - sum(p.nbytes for p in run.task.model.parameters())
start = time.process_time()
seconds = sum(step.seconds for step in training.steps(run.settings.train.steps))
cpu = time.process_time() - start
print(json.dumps({"process": peak_memory() - base, "seconds": seconds, "cpu": cpu}))
"""


def write_data(folder: Path) -> None:
    rng, words = random.Random(0), [f"w{n}" for n in range(WORDS)]

    def sentence() -> str:
        return " ".join(rng.choices(words, k=rng.randint(5, 50)))

    pairs = "".join(f"{sentence()}\t{sentence()}\n" for _ in range(SENTENCES))
    (folder / "pairs.tsv").write_text(pairs)
    paragraphs = ["\n".join(sentence() for _ in range(8)) for _ in range(SENTENCES // 8)]
    (folder / "text.txt").write_text("\n\n".join(paragraphs) + "\n")
    for name, config in CONFIGS.items():
        (folder / f"{name}.toml").write_text(config)


def output(folder: Path, *words: str) -> dict[str, Any]:
    """Return the JSON object that a process of its own prints last."""
    completed = subprocess.run(
        [sys.executable, *words], cwd=folder, check=False, capture_output=True, text=True
    )
    if completed.returncode:
        sys.exit(completed.stderr)
    return json.loads(completed.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--models", nargs="*", default=list(CONFIGS))
    given = parser.parse_args()
    columns = (f"{'planned':>10}{name:>8}{'ratio':>7}" for name in ("MB", "s", "CPU s"))
    print(f"{'':12}{''.join(columns)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        for model in given.models:
            words = (f"{model}.toml", f"train.steps={given.steps}")
            plan = output(folder, "-m", "regard", "plan", *words, "--measure", "--json")
            seen = output(folder, "-c", TRAINING, *words)
            timed, seconds = plan["timed"], plan["seconds_here"]
            pairs = (
                (timed["process"] / 1e6, seen["process"] / 1e6),
                (seconds, seen["seconds"]),
                (seconds * timed["cpu_seconds"] / timed["seconds"], seen["cpu"]),
            )
            cells = (f"{ours:10.1f}{theirs:8.1f}{ours / theirs:7.2f}" for ours, theirs in pairs)
            print(f"{model:12}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
