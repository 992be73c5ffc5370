"""Results of models side by side, as plain numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from regard.errors import InputError

Number = int | float
Numbers = Sequence[Number]


class ModelResult(NamedTuple):
    """Results of one model on one set of examples; None is unknown or does not apply."""

    name: str
    values: dict[str, Number | None]  # parameters, scores, speeds; `view.report` lists them
    by_length: dict[str, float]  # BLEU by words of the source: "1-10", "11-20", …


class SeedSpread(NamedTuple):
    """Mean and deviation over models that differ only in their seed."""

    names: list[str]
    mean: ModelResult
    deviation: ModelResult  # sample standard deviation


def seed_spread(name: str, models: Sequence[ModelResult]) -> SeedSpread:
    """Aggregate two or more models; a value that one of them lacks becomes None."""

    def aggregate_results(statistic: Callable[[Numbers], float]) -> ModelResult:
        values = {
            key: aggregate(statistic, [m.values.get(key) for m in models])
            for key in models[0].values
        }
        bins = [key for key in models[0].by_length if all(key in m.by_length for m in models)]
        return ModelResult(
            name, values, {b: statistic([m.by_length[b] for m in models]) for b in bins}
        )

    return SeedSpread(
        [model.name for model in models],
        aggregate_results(mean),
        aggregate_results(standard_deviation),
    )


def aggregate(
    statistic: Callable[[Numbers], float], numbers: Sequence[Number | None]
) -> float | None:
    present = [number for number in numbers if number is not None]
    return statistic(present) if len(present) == len(numbers) else None


def mean(numbers: Numbers) -> float:
    return math.fsum(numbers) / len(numbers)


def standard_deviation(numbers: Numbers) -> float:
    """sqrt(sum (x - mean)^2 / (n - 1))"""
    if len(numbers) < 2:
        raise InputError(f"a deviation needs at least two numbers, not {len(numbers)}")
    center = mean(numbers)
    return math.sqrt(math.fsum((x - center) ** 2 for x in numbers) / (len(numbers) - 1))


def concatenated_records(
    records: Sequence[Mapping[str, str]], max_group_size: int
) -> list[dict[str, str]]:
    """Return the records, and consecutive records joined in groups of 2, 3, … `max_group_size`.

    This makes long sentences out of short ones, for curves like fig. 2 of Bahdanau et al. 2015.
    Each record is once in the groups of each size; an incomplete last group is dropped.
    """
    if max_group_size < 1:
        raise InputError(f"max_group_size must be at least 1, not {max_group_size}")
    return [
        {side: " ".join(record[side] for record in group) for side in ("source", "target")}
        for size in range(1, max_group_size + 1)
        for start in range(0, len(records) - size + 1, size)
        for group in [records[start : start + size]]
    ]


def length_bin_edges(sources: Sequence[str]) -> tuple[int, ...]:
    """Return the edges of five bins: of ten words each, or fewer if all sources are short."""
    max_words = max(len(source.split()) for source in sources)
    step = 10 if max_words > 20 else 5 if max_words > 10 else 2
    return tuple(range(step, 5 * step + 1, step))
