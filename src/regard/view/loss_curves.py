"""Lines of a chart from the log of a training: losses and metrics."""

import math
from collections.abc import Iterable

from regard.files import JsonObject
from regard.view.chart import Lines

MAX_POINTS = 400  # of a line; in longer trainings, a point is the mean of several steps


def loss_lines(log: Iterable[JsonObject]) -> Lines:
    """Return the lines "train" and "dev" of a log.jsonl, without empty ones."""
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


def metric_lines(log: Iterable[JsonObject]) -> Lines:
    """Return the line "metric" of a log.jsonl, train.metric on dev, if there are validations."""
    points = [(entry["step"], entry["metric"]) for entry in log if entry["kind"] == "dev"]
    return (
        {"metric": ([step for step, _ in points], [value for _, value in points])} if points else {}
    )
