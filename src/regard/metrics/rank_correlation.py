"""Do two measures put the same things first?"""

import math
from collections.abc import Sequence


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float:
    """tau-b: pairs in the same order less those in the other, as a share of those without a tie.

    nan where one of them has all things alike (Kendall 1945).
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} numbers beside {len(second)}")
    concordance, untied_first, untied_second = 0, 0, 0
    for n in range(len(first)):
        for m in range(n):
            a, b = sign(first[n] - first[m]), sign(second[n] - second[m])
            concordance += a * b
            untied_first += a != 0
            untied_second += b != 0
    denominator = math.sqrt(untied_first * untied_second)
    return concordance / denominator if denominator else math.nan


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def top_overlap(first: Sequence[float], second: Sequence[float], count: int) -> float:
    """Of the `count` greatest of one, the share that is so in the other; ties go to the first."""
    count = min(count, len(first))
    if not count:
        return math.nan
    return len(top_indices(first, count) & top_indices(second, count)) / count


def top_indices(numbers: Sequence[float], count: int) -> set[int]:
    return set(sorted(range(len(numbers)), key=lambda n: (-numbers[n], n))[:count])
