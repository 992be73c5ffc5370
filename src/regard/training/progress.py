"""Training with a progress bar, messages, and a picture of the loss."""

import time
from pathlib import Path

from regard.files import write_atomic
from regard.training.log import LOSS_PLOT, read_log
from regard.training.trainer import Trainer, Validation
from regard.view import chart
from regard.view.curve import ChartLabels
from regard.view.loss_curves import loss_lines
from regard.view.progress import ProgressBar

SECONDS_BETWEEN_PICTURES = 60.0


def train_with_progress(trainer: Trainer, progress: ProgressBar) -> bool:
    """Train and show each step; return whether Ctrl-C ended it, which loses no step."""
    picture = LossPicture(trainer.folder)
    try:
        for event in trainer:
            if isinstance(event, Validation):
                best = ", the best so far" if event.best else ""
                metric = trainer.settings.train.metric
                metric_text = "" if metric == "loss" else f", {metric} {event.metric:.2f}"
                progress.log(f"step {event.step}: dev loss {event.loss:.4f}{metric_text}{best}")
                picture.update_if_due()
            else:
                speed = event.tokens / event.seconds
                unit = trainer.run.task.unit
                progress.update(event.number, f"loss {event.loss:.4f}  {speed:,.0f} {unit}/s")
    except KeyboardInterrupt:
        trainer.close()
        picture.update()
        return True
    picture.update()
    return False


class LossPicture:
    """The file loss.png of a run. Drawing takes at most a hundredth of the training time."""

    def __init__(self, folder: Path):
        self.folder, self.next_update = folder, time.monotonic() + SECONDS_BETWEEN_PICTURES

    def update_if_due(self) -> None:
        start = time.monotonic()
        if start >= self.next_update:
            self.update()
            spent = time.monotonic() - start
            self.next_update = start + spent + max(SECONDS_BETWEEN_PICTURES, 100 * spent)

    def update(self) -> None:
        """Draw the picture, unless matplotlib is missing or the log is empty."""
        lines = loss_lines(read_log(self.folder))
        if lines and chart.can_draw():
            labels = ChartLabels(f"Loss of {self.folder.name}", "steps", "loss per token, in nats")
            write_atomic(self.folder / LOSS_PLOT, chart.line_chart_png(lines, labels))
