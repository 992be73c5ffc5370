"""`regard demo`: learn to read dates in twenty languages, then show where the model looked."""

import os
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from regard.cli.look import picture
from regard.cli.progress import bar
from regard.cli.train import follow
from regard.config.load import resolve
from regard.config.settings import Settings
from regard.train.fit import Fit
from regard.train.translate import TranslateRun
from regard.view.terminal import Surface

SHOWN = 5  # examples printed
DATE = "Tuesday, May 3rd, 1994"


def demo(
    steps: Annotated[int, typer.Option(min=1, help="Optimiser steps.")] = 520,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same run.")] = 1,
    folder: Annotated[Path, typer.Option("--run", help="Where the run goes.")] = Path("runs/demo"),
) -> None:
    """Train RNNsearch (Bahdanau et al. 2015) to turn written dates into ISO 8601.

    Takes a minute or two. Ctrl-C ends the training and shows what was learnt so far.
    """
    torch.set_num_threads(idle_cores())
    with bar("training", steps) as shown:
        fit = Fit(settings(steps, seed), folder, shown.say)
        stopped = follow(fit, shown)
    done = fit.training.done
    if stopped:
        print(f"Stopped after {done} of {steps} steps. This is what was learnt so far:")
    report(folder)
    print(
        f'\nTry next:\n  regard look {folder} "23. Februar 2031"\n'
        f'  echo "le 1er mai 1968" | regard predict {folder}\n'
        "  regard init translate > my.toml    # then, with your own data: regard train my.toml"
    )


def idle_cores() -> int:
    """Two if nobody else wants them: beside a busy process, two threads are slower than one."""
    return max(1, min(2, (os.cpu_count() or 1) - round(os.getloadavg()[0])))


def settings(steps: int, seed: int) -> Settings:
    """What the demo trains: small enough for two minutes, large enough to be right."""
    return resolve(
        {
            "seed": seed,
            "data": {"kind": "dates", "size": 40_000},
            "text": {"kind": "characters"},
            "model": {"kind": "rnnsearch", "dim": 64, "hidden_dim": 128, "init": "scaled"},
            "train": {
                "steps": steps,
                "tokens_per_batch": 2000,
                "learning_rate": 3e-3,
                "schedule": {"kind": "cosine", "warmup": min(50, steps - 1)},
                "validate_every": 1_000_000,
                "save_every": 200,
            },
            "decode": {"kind": "greedy"},
        },
        name="demo",
    )


def report(folder: Path) -> None:
    """How well it does on dates it has never seen, some of them, and where it looked in one."""
    run = TranslateRun.load(folder)
    records = list(run.corpus().read("test"))
    outputs = run.predict([record["source"] for record in records])
    right = [best[0].text == r["target"] for best, r in zip(outputs, records, strict=True)]
    print(f"{sum(right) / len(right):.1%} of {len(right)} unseen dates are right. Some of them:\n")
    for record, best in list(zip(records, outputs, strict=True))[:SHOWN]:
        wrong = "" if best[0].text == record["target"] else f"   (it is {record['target']})"
        print(f"  {record['source']:32} {best[0].text}{wrong}")
    print(
        "\nWhere it looked: rows are what it wrote, columns what it read; the cell is the weight.\n"
    )
    print(picture(run, DATE, Surface.of(Console())))
