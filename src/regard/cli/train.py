"""`regard train`: train the model of a config into the folder of a run, or resume it."""

from pathlib import Path
from typing import Annotated

import torch
import typer

from regard.cli.options import (
    ChangesArgument,
    ConfigArgument,
    DeviceOption,
    SkipBadOption,
    ThreadsOption,
    with_skip_bad,
)
from regard.errors import InputError
from regard.tasks.load import load_settings
from regard.training.distributed.group import is_worker, join_group, restart_count
from regard.training.distributed.launch import launch_workers
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
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            min=1,
            max=1024,
            help="Number of processes on this machine that share each batch.",
        ),
    ] = 1,
    threads: ThreadsOption = None,
    device: DeviceOption = None,
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

    With --processes, or under torchrun, several processes share each batch. If one of them dies,
    all start again from the last checkpoint.
    """
    changes = with_skip_bad(changes, skip_bad)
    changes += [f"train.device={device}"] if device is not None else []
    folder = folder or Path("runs", config.stem)
    if processes > 1:
        if is_worker():
            raise InputError("--processes: torchrun has started the processes; leave it out")
        load_settings(config, changes)  # reports a mistake before any process starts
        words = [str(config), *changes, "--run", str(folder)]
        words += ["--threads", str(threads or max(1, torch.get_num_threads() // processes))]
        words += ["--accept-changed-data"] if accept_changed_data else []
        code = launch_workers("regard.cli.train_worker", ["train", *words], processes)
        raise typer.Exit(code)
    if threads is not None:
        torch.set_num_threads(threads)
    settings = load_settings(config, changes)
    with (
        join_group(settings.seed, settings.train.device) as group,
        progress_bar("training", settings.train.steps, hidden=not group.is_main) as progress,
    ):
        if restart_count():
            progress.log(f"{folder}: a process died; all start again (restart {restart_count()})")
        trainer = Trainer(
            settings, folder, progress.log, accept_changed_data=accept_changed_data, group=group
        )
        stop = train_with_progress(trainer, progress)
    if group.is_main:
        print_end(trainer, is_stopped=stop is not None)
    if stop is not None:
        raise typer.Exit(exit_code(stop))


def print_end(trainer: Trainer, *, is_stopped: bool) -> None:
    """Print how far the training came, and what to do next."""
    folder, steps_done, splits = trainer.folder, trainer.training.steps_done, trainer.corpus.splits
    if is_stopped:
        print(f"Stopped after step {steps_done}; give the same command to resume.")
        return
    print(f"{folder}: trained for {steps_done} steps")
    split = "" if "test" in splits else f" --split {splits[-1]}"
    print(f'Try: regard score {folder}{split}, or: echo "…" | regard predict {folder}')
