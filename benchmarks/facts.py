"""Does BiDAF find one of several facts by two keys, and what does each part of it add?

    python benchmarks/facts.py [--without none letters words c2q q2c] [--steps 300] [--seed 1]

A context tells two traits of each of two things; in one context of five the things have names
that are in no other, and can be told apart by their letters alone. Prints for the whole model and
without each part (Seo et al. 2017, table 1b): answers that are exactly right, in percent, of all
questions, of those on known names and of those on new ones; and the CPU seconds of training on one
thread.
"""

import argparse
import time

import torch

from regard.data.build import build_corpus
from regard.run import Run
from regard.tasks.building import batch_options
from regard.tasks.load import resolve_settings
from regard.training.build import build_training

PARTS = ("none", "letters", "words", "c2q", "q2c")
KEYS = {"letters": "use_characters", "words": "use_words"}  # of parts with another name in [model]
NEW = 6  # letters of a new name; known ones have four


def row(without: str, steps: int, seed: int) -> str:
    model = {
        "kind": "bidaf",
        "dim": 32,
        "hidden_dim": 32,
        "character_output_dim": 16,
        "filters": [[3, 16]],
    }
    settings = resolve_settings(
        {
            "task": "answer",
            "seed": seed,
            "data": {"kind": "facts", "size": 8000, "held_out": 1000, "seed": seed, "entities": 2},
            "text": {"kind": "words", "min_count": 20},
            "model": {
                **model,
                "layers": 1,
                "dropout": 0.0,
                **({} if without == "none" else {KEYS.get(without, without): False}),
            },
            "head": {"max_answer_tokens": 3, "dropout": 0.0},
            "train": {
                "steps": steps,
                "examples_per_batch": 64,
                "learning_rate": 0.005,
                "schedule": {"kind": "cosine"},
                "max_grad_norm": 5.0,
            },
        }
    )
    corpus = build_corpus(settings.data)
    run = Run.create(settings, corpus)
    batches = run.task.batches(corpus, batch_options(settings))
    training = build_training(settings, run.task, batches)
    start = time.process_time()
    for _ in training.steps(steps):
        pass
    seconds = time.process_time() - start
    records = list(corpus.read("test"))
    right = [
        answer.text == record["answers"][0]["text"]
        for answer, record in zip(run.predict(records), records, strict=True)
    ]
    new = [len(record["question"].split()[5]) == NEW for record in records]
    shares = [
        100
        * sum(r for r, n in zip(right, new, strict=True) if n in kind)
        / sum(n in kind for n in new)
        for kind in ((True, False), (False,), (True,))
    ]
    told = " ".join(f"{share:8.1f}" for share in shares)
    return f"{without:10} {told} {seconds:8.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'without':10} {'all':>8} {'known':>8} {'new':>8} {'CPU s':>8}")
    for part in given.without:
        print(row(part, given.steps, given.seed), flush=True)


if __name__ == "__main__":
    main()
