"""`regard demo`: train a translator of dates in twenty languages, then show its attention."""

import os
from pathlib import Path
from signal import SIGINT
from typing import Annotated

import torch
import typer
from rich.console import Console

from regard.cli.train import train_with_progress
from regard.config.settings import Settings
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.signals import exit_code
from regard.training.trainer import Trainer
from regard.view.progress import progress_bar
from regard.view.terminal import Surface

PRINTED_EXAMPLES = 5
EXAMPLE_DATE = "Tuesday, May 3rd, 1994"


def demo(
    steps: Annotated[int, typer.Option(min=1, help="Number of optimizer steps.")] = 520,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of weights and batches.")] = 1,
    folder: Annotated[
        Path, typer.Option("--run", metavar="RUN", help="Folder of the new run.")
    ] = Path("runs/demo"),
) -> None:
    """Train RNNsearch (Bahdanau et al. 2015) to translate written dates into ISO 8601.

    The training takes one to two minutes. Ctrl-C ends it early and shows the result so far.
    """
    torch.set_num_threads(idle_cores())
    with progress_bar("training", steps) as progress:
        trainer = Trainer(demo_settings(steps, seed), folder, progress.log)
        stop = train_with_progress(trainer, progress)
    steps_done = trainer.training.steps_done
    if stop is not None:
        print(f"Stopped after {steps_done} of {steps} steps. The result so far:")
    if stop in (None, SIGINT):
        print_report(folder)
        print_next_commands(folder)
    if stop is not None:
        raise typer.Exit(exit_code(stop))


def print_next_commands(folder: Path) -> None:
    print(
        f'\nTry next:\n  regard look {folder} "23. Februar 2031"\n'
        f'  echo "le 1er mai 1968" | regard predict {folder}\n'
        "  regard init translate > my.toml    # edit data.train; then: regard train my.toml"
    )


def idle_cores() -> int:
    """Return 2 if two cores are idle, otherwise 1.

    Next to another busy process, two threads are slower than one.
    """
    return max(1, min(2, (os.cpu_count() or 1) - round(os.getloadavg()[0])))


def demo_settings(steps: int, seed: int) -> Settings:
    """Return settings that reach a high accuracy within two minutes."""
    return resolve_settings(
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


def print_report(folder: Path) -> None:
    """Print the accuracy on unseen dates, some examples, and the attention of one of them."""
    run = Run.load(folder)
    records = run.read_split("test")
    outputs = [prediction.text for prediction in run.predict(records)]
    correct = [output == r["target"] for output, r in zip(outputs, records, strict=True)]
    accuracy = sum(correct) / len(correct)
    print(f"{accuracy:.1%} of {len(correct)} unseen dates are correct. Examples:\n")
    for record, output in list(zip(records, outputs, strict=True))[:PRINTED_EXAMPLES]:
        correction = "" if output == record["target"] else f"   (correct: {record['target']})"
        print(f"  {record['source']:32} {output}{correction}")
    print("\nAttention: one row per output character, one column per input character.\n")
    surface = Surface.from_console(Console())
    print(run.task.render(run.records([EXAMPLE_DATE])[0], surface))
