"""`regard train`: from a config to a run in a folder; the same words again go on with it."""

import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from regard.cli.progress import Bar, bar
from regard.config.load import load
from regard.config.whole import write_whole
from regard.train.fit import Fit, Validation
from regard.train.log import PICTURE, read
from regard.view import chart
from regard.view.curve import Words
from regard.view.loss import losses

SELDOM = 60.0  # seconds


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
    settings = load(config, changes or ())
    folder = folder or Path("runs", config.stem)
    with bar("training", settings.train.steps) as shown:
        fit = Fit(settings, folder, shown.say)
        if fit.training.done:
            shown.say(f"{folder}: goes on after step {fit.training.done}")
        stopped = follow(fit, shown)
    if stopped:
        print(f"Stopped after step {fit.training.done}. The same command goes on from there.")
    print(f"{folder}: trained for {fit.training.done} steps")
    print(f'Try: regard score {folder}, or: echo "…" | regard predict {folder}')


def follow(fit: Fit, shown: Bar) -> bool:
    """Show each step; Ctrl-C ends the training, and loses nothing."""
    drawing = Drawing(fit.folder)
    try:
        for event in fit.events():
            if isinstance(event, Validation):
                best = ", the best so far" if event.best else ""
                metric = fit.settings.train.metric
                more = "" if metric == "loss" else f", {metric} {event.metric:.2f}"
                shown.say(f"step {event.step}: dev loss {event.loss:.4f}{more}{best}")
                drawing.now_and_then()
            else:
                speed = event.tokens / event.seconds
                counted = fit.run.counted
                shown.show(event.number, f"loss {event.loss:.4f}  {speed:,.0f} {counted}/s")
    except KeyboardInterrupt:
        fit.close()
        drawing.now()
        return True
    drawing.now()
    return False


class Drawing:
    """loss.png of a run, drawn seldom enough to take no more than a hundredth of the time."""

    def __init__(self, folder: Path):
        self.folder, self.due = folder, time.monotonic() + SELDOM

    def now_and_then(self) -> None:
        start = time.monotonic()
        if start >= self.due:
            self.now()
            spent = time.monotonic() - start
            self.due = start + spent + max(SELDOM, 100 * spent)

    def now(self) -> None:
        """Without matplotlib, or without a step, there is no picture."""
        lines = losses(read(self.folder))
        if lines and chart.can_draw():
            words = Words(f"Loss of {self.folder.name}", "steps", "loss per token, in nats")
            write_whole(self.folder / PICTURE, chart.draw(lines, words))
