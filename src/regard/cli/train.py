"""`regard train`: from a config to a run in a folder; the same words again go on with it."""

import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from regard.cli.progress import ProgressBar, progress_bar
from regard.files import write_atomic
from regard.tasks.load import load_settings
from regard.training.log import LOSS_PLOT, read_log
from regard.training.trainer import Trainer, Validation
from regard.view import chart
from regard.view.curve import ChartLabels
from regard.view.loss_curves import loss_lines

SECONDS_BETWEEN_PICTURES = 60.0  # seconds


def train(
    config: Annotated[
        Path, typer.Argument(help="A TOML file (`regard init` writes one), or a preset's name.")
    ],
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="Such as train.steps=500.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--run", help="Where to; runs/ and the config's name else.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Cores to use; all of them else.")
    ] = None,
) -> None:
    """Train as CONFIG says. The same command again resumes, exactly where it was left."""
    if threads is not None:
        torch.set_num_threads(threads)
    settings = load_settings(config, changes or ())
    folder = folder or Path("runs", config.stem)
    with progress_bar("training", settings.train.steps) as progress:
        trainer = Trainer(settings, folder, progress.log)
        if trainer.training.steps_done:
            progress.log(f"{folder}: goes on after step {trainer.training.steps_done}")
        was_interrupted = train_with_progress(trainer, progress)
    if was_interrupted:
        print(
            f"Stopped after step {trainer.training.steps_done}. The same command goes on "
            "from there."
        )
    print(f"{folder}: trained for {trainer.training.steps_done} steps")
    print(f'Try: regard score {folder}, or: echo "…" | regard predict {folder}')


def train_with_progress(trainer: Trainer, progress: ProgressBar) -> bool:
    """Show each step; Ctrl-C ends the training, and loses nothing."""
    drawing = LossPicture(trainer.folder)
    try:
        for event in trainer:
            if isinstance(event, Validation):
                best = ", the best so far" if event.best else ""
                metric = trainer.settings.train.metric
                metric_text = "" if metric == "loss" else f", {metric} {event.metric:.2f}"
                progress.log(f"step {event.step}: dev loss {event.loss:.4f}{metric_text}{best}")
                drawing.update_if_due()
            else:
                speed = event.tokens / event.seconds
                unit = trainer.run.task.unit
                progress.update(event.number, f"loss {event.loss:.4f}  {speed:,.0f} {unit}/s")
    except KeyboardInterrupt:
        trainer.close()
        drawing.update()
        return True
    drawing.update()
    return False


class LossPicture:
    """loss.png of a run, drawn seldom enough to take no more than a hundredth of the time."""

    def __init__(self, folder: Path):
        self.folder, self.next_update = folder, time.monotonic() + SECONDS_BETWEEN_PICTURES

    def update_if_due(self) -> None:
        start = time.monotonic()
        if start >= self.next_update:
            self.update()
            spent = time.monotonic() - start
            self.next_update = start + spent + max(SECONDS_BETWEEN_PICTURES, 100 * spent)

    def update(self) -> None:
        """Without matplotlib, or without a step, there is no picture."""
        lines = loss_lines(read_log(self.folder))
        if lines and chart.can_draw():
            labels = ChartLabels(f"Loss of {self.folder.name}", "steps", "loss per token, in nats")
            write_atomic(self.folder / LOSS_PLOT, chart.line_chart_png(lines, labels))
