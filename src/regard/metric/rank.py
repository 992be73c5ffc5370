"""Do two measures put the same things first?"""

import math
from collections.abc import Sequence


def kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """tau-b: pairs in the same order less those in the other, as a share of those without a tie.

    nan where one of them has all things alike (Kendall 1945).
    """
    if len(one) != len(other):
        raise ValueError(f"{len(one)} numbers beside {len(other)}")
    agree, ties_one, ties_other = 0, 0, 0
    for n in range(len(one)):
        for m in range(n):
            a, b = sign(one[n] - one[m]), sign(other[n] - other[m])
            agree += a * b
            ties_one += a != 0
            ties_other += b != 0
    below = math.sqrt(ties_one * ties_other)
    return agree / below if below else math.nan


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def overlap(one: Sequence[float], other: Sequence[float], count: int) -> float:
    """Of the `count` greatest of one, the share that is so in the other; ties go to the first."""
    count = min(count, len(one))
    if not count:
        return math.nan
    return len(greatest(one, count) & greatest(other, count)) / count


def greatest(numbers: Sequence[float], count: int) -> set[int]:
    return set(sorted(range(len(numbers)), key=lambda n: (-numbers[n], n))[:count])
