"""Training with a progress bar, messages, and a picture of the loss."""

import time
from pathlib import Path
from signal import SIGINT, Signals

from regard.files import write_atomic
from regard.training.log import LOSS_PLOT, read_log
from regard.training.loop import Step
from regard.training.signals import StopRequested, catch_stop_signals
from regard.training.trainer import Trainer, Validation
from regard.view import chart
from regard.view.curve import ChartLabels
from regard.view.loss_curves import loss_lines
from regard.view.progress import ProgressBar

SECONDS_BETWEEN_PICTURES = 60.0


def train_with_progress(trainer: Trainer, progress: ProgressBar) -> Signals | None:
    """Train and show each step; return the signal that stopped it, which loses no step."""
    picture = LossPicture(trainer.folder)
    progress.set_total(trainer.settings.train.steps)
    announce_resume(trainer, progress)
    with catch_stop_signals(lambda: trainer.is_validating) as request:
        try:
            for event in trainer:
                if (stop := trainer.group.agreed_stop(request.signal)) is not None:
                    request.signal = stop
                    break
                show_event(event, trainer, progress)
                if isinstance(event, Validation) and trainer.group.is_main:
                    picture.update_if_due()
        except StopRequested:
            pass
        except OSError:  # writing to a terminal that was closed
            if not request.is_set():
                raise
        trainer.close()
        if trainer.group.is_main and request.signal in (None, SIGINT):
            picture.update()
    return request.signal


def announce_resume(trainer: Trainer, progress: ProgressBar) -> None:
    """Say before the first step that an existing run is continued, and for how long."""
    steps, steps_done = trainer.settings.train.steps, trainer.training.steps_done
    if steps_done and not trainer.is_finished():
        count = (steps or steps_done) - steps_done
        more = (
            f"; {count:,} more {'step follows' if count == 1 else 'steps follow'}" if steps else ""
        )
        progress.log(f"{trainer.folder}: resumed after step {steps_done}{more}")


def show_event(event: Step | Validation, trainer: Trainer, progress: ProgressBar) -> None:
    if isinstance(event, Validation):
        best = ", the best so far" if event.best else ""
        metric = trainer.settings.train.metric
        metric_text = "" if metric == "loss" else f", {metric} {event.metric:.2f}"
        progress.log(f"step {event.step}: dev loss {event.loss:.4f}{metric_text}{best}")
    else:
        speed = event.tokens / event.seconds
        text = f"loss {event.loss:.4f}  {speed:,.0f} {trainer.run.task.unit}/s"
        progress.update(event.number, text)


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
