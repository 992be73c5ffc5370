"""The log of a training as lines: its loss, and that of the dev split."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from regard.view.chart import Lines

MAX_POINTS = 400  # of a line: of longer trainings, each is the mean of several steps


def loss_lines(log: Iterable[Mapping[str, Any]]) -> Lines:
    """Entries as of log.jsonl -> "train" and "dev", so far as there is something of them."""
    train: list[tuple[int, float]] = []
    dev: list[tuple[int, float]] = []
    for entry in log:
        if entry["kind"] == "step":
            train.append((entry["number"], entry["loss"]))
        else:
            dev.append((entry["step"], entry["loss"]))
    size = math.ceil(len(train) / MAX_POINTS) or 1
    groups = [train[start : start + size] for start in range(0, len(train), size)]
    means = [(group[-1][0], sum(loss for _, loss in group) / len(group)) for group in groups]
    points = {"train": means, "dev": dev}
    return {
        name: ([step for step, _ in line], [loss for _, loss in line])
        for name, line in points.items()
        if line
    }


def metric_lines(log: Iterable[Mapping[str, Any]]) -> Lines:
    """The same -> "metric", what the settings compare on dev, if it was looked at."""
    points = [(entry["step"], entry["metric"]) for entry in log if entry["kind"] == "dev"]
    return (
        {"metric": ([step for step, _ in points], [value for _, value in points])} if points else {}
    )
