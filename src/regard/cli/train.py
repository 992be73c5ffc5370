"""`regard train`: train the model of a config into the folder of a run, or resume it."""

from pathlib import Path
from typing import Annotated

import torch
import typer

from regard.cli.options import (
    ChangesArgument,
    ConfigArgument,
    SkipBadOption,
    ThreadsOption,
    with_skip_bad,
)
from regard.tasks.load import load_settings
from regard.training.progress import train_with_progress
from regard.training.signals import exit_code
from regard.training.trainer import Trainer
from regard.view.progress import progress_bar


def train(
    config: ConfigArgument,
    changes: ChangesArgument = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Folder of the new run. Default: runs/ and the name of CONFIG.",
        ),
    ] = None,
    threads: ThreadsOption = None,
    skip_bad: SkipBadOption = False,
    accept_changed_data: Annotated[
        bool,
        typer.Option(
            "--accept-changed-data", help="Resume although files of the data were changed."
        ),
    ] = False,
) -> None:
    """Train the model of CONFIG, and save it as a run.

    To resume a training that was interrupted, give the same command again: the result is the same
    as without the interruption. Ctrl-C, SIGTERM and SIGHUP save the state before they stop it; the
    exit code is then 130, 143 or 129.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    settings = load_settings(config, with_skip_bad(changes, skip_bad))
    folder = folder or Path("runs", config.stem)
    with progress_bar("training", settings.train.steps) as progress:
        trainer = Trainer(settings, folder, progress.log, accept_changed_data=accept_changed_data)
        stop = train_with_progress(trainer, progress)
    if stop is not None:
        print(f"Stopped after step {trainer.training.steps_done}; give the same command to resume.")
        raise typer.Exit(exit_code(stop))
    print(f"{folder}: trained for {trainer.training.steps_done} steps")
    split = "" if "test" in trainer.corpus.splits else f" --split {trainer.corpus.splits[-1]}"
    print(f'Try: regard score {folder}{split}, or: echo "…" | regard predict {folder}')
