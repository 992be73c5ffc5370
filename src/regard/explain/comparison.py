"""Check and measure the runs of a comparison."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from regard.config.settings import Settings
from regard.config.train import TrainConfig
from regard.errors import InputError
from regard.metrics.comparison import ModelResult, Number
from regard.run import Run
from regard.tasks.base import ProgressCallback
from regard.tasks.catalogue import find_task
from regard.tasks.comparison import Comparison
from regard.training.build import with_rate_multipliers
from regard.training.log import LogEntry, entry_step, read_log


def check_models(models: Mapping[str, Settings]) -> None:
    """Build every model on the meta device, to find errors before the first one is trained."""
    for name, settings in models.items():
        builder = find_task(settings.task).builder()
        try:
            settings = builder.resolve_settings(settings)
            vocabularies = builder.placeholder_vocabularies(settings)
            with torch.device("meta"):
                task = Run(settings, vocabularies).task
                groups = task.parameter_groups()
                with_rate_multipliers(task.model, groups, settings.train.rate_multipliers)
        except ValueError as error:
            raise InputError(f"{name}: {error}") from error


def check_training_lengths(models: Mapping[str, Settings], runs: Path) -> None:
    """Raise an error for a run that was trained longer than its config says.

    Such a run no longer has the weights of its config.
    """
    for name, settings in models.items():
        log = read_log(runs / name)
        expected_end = final_step(settings.train, log)
        if expected_end is not None and entry_step(log[-1]) > expected_end:
            problem = (
                f"was trained for {entry_step(log[-1])} steps, but its config ends after "
                f"{expected_end}"
            )
            raise InputError(f"{runs / name}: {problem}; train as long, or use other --runs")


def final_step(train: TrainConfig, log: Sequence[LogEntry]) -> int | None:
    """Return the step at which these settings end a training, if the log has it."""
    validations_without_gain = 0
    for entry in log:
        if entry["kind"] == "dev":
            validations_without_gain = 0 if entry["best"] else validations_without_gain + 1
            is_over = train.patience is not None and validations_without_gain >= train.patience
        elif train.steps is not None:
            is_over = entry["number"] >= train.steps
        else:
            is_over = train.epochs is not None and entry.get("epoch", 0) >= train.epochs
        if is_over:
            return entry_step(entry)
    return None


def measure_run(
    name: str,
    run: Run,
    log: Sequence[LogEntry],
    comparison: Comparison,
    on_progress: ProgressCallback,
) -> ModelResult:
    """Return the numbers of a run: size, metrics of its task, speed of its training."""
    measurement = comparison.measure(run.task, on_progress)
    speed, seconds = training_speed(log)
    values: dict[str, Number | None] = {
        "parameters": parameter_count(run),
        **measurement.values,
        f"training_{run.task.unit}": speed,
        "training_seconds": seconds,
    }
    return ModelResult(name, values, measurement.by_length)


def parameter_count(run: Run) -> int:
    return sum(weight.numel() for weight in run.model.parameters())


def training_speed(log: Sequence[LogEntry]) -> tuple[float, float]:
    """Return units (such as tokens) per second, and the seconds of all steps without validation."""
    steps = [entry for entry in log if entry["kind"] == "step"]
    seconds = float(sum(entry["seconds"] for entry in steps))
    return sum(entry["tokens"] for entry in steps) / seconds if seconds else 0.0, seconds
