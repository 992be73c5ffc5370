"""Agreement of two rankings: Kendall's tau and the overlap of the top items."""

import math
from collections.abc import Sequence

from regard.errors import InputError


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float:
    """tau-b = (concordant - discordant) / sqrt(pairs untied in first * pairs untied in second).

    It is nan if all numbers of one sequence are equal (Kendall 1945).
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} and {len(second)} numbers; give equally many")
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
    """Return the share of the `count` largest numbers of one that are so in the other.

    Of equal numbers, the first count as larger.
    """
    count = min(count, len(first))
    if not count:
        return math.nan
    return len(top_indices(first, count) & top_indices(second, count)) / count


def top_indices(numbers: Sequence[float], count: int) -> set[int]:
    return set(sorted(range(len(numbers)), key=lambda n: (-numbers[n], n))[:count])
