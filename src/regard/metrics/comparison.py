"""What is told of a model beside others, as plain numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Number = int | float
Numbers = Sequence[Number]


class ModelResult(NamedTuple):
    """One model on one set of examples. What is None is not known, or makes no sense for it."""

    name: str
    values: dict[str, Number | None]  # parameters, scores, speeds: `view.report` has all of them
    by_length: dict[str, float]  # BLEU by words of the source: "1-10", "11-20", …


class SeedSpread(NamedTuple):
    """Several models that differ in their seed alone."""

    names: list[str]
    mean: ModelResult
    deviation: ModelResult  # sample standard deviation


def seed_spread(name: str, models: Sequence[ModelResult]) -> SeedSpread:
    """Over two models or more; a number that one of them lacks has neither mean nor deviation."""

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
        raise ValueError(f"a deviation needs two numbers or more, not {len(numbers)}")
    center = mean(numbers)
    return math.sqrt(math.fsum((x - center) ** 2 for x in numbers) / (len(numbers) - 1))


def concatenated_records(
    records: Sequence[Mapping[str, str]], max_group_size: int
) -> list[dict[str, str]]:
    """Records, and pairs, threes … of consecutive ones as one, each record once in each of them.

    Long sentences out of short ones (as Bahdanau et al. 2015 would need them for their fig. 2). A
    rest that does not fill a group is left out.
    """
    if max_group_size < 1:
        raise ValueError(f"most must be at least 1, not {max_group_size}")
    return [
        {side: " ".join(record[side] for record in group) for side in ("source", "target")}
        for size in range(1, max_group_size + 1)
        for start in range(0, len(records) - size + 1, size)
        for group in [records[start : start + size]]
    ]


def length_bin_edges(sources: Sequence[str]) -> tuple[int, ...]:
    """Bins of ten words up to 50, or finer ones where no source is that long."""
    max_words = max(len(source.split()) for source in sources)
    step = 10 if max_words > 20 else 5 if max_words > 10 else 2
    return tuple(range(step, 5 * step + 1, step))
