"""How well a fold was told: states of residues, distances and contacts of pairs."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

UNTOLD = "?"  # a state that nobody knows: it counts in nothing
Table = NDArray[np.float64]


def residue_accuracy(guessed: Sequence[str], true: Sequence[str]) -> float:
    """The share of all residues of all proteins whose state is right, 0 to 1: Q3, or Q8."""
    right = total = 0
    for mine, theirs in zip(guessed, true, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            right += one == other
            total += other != UNTOLD
    if not total:
        raise ValueError("true states are missing: there is nothing to average over")
    return right / total


def majority(true: Sequence[str]) -> float:
    """The same, of who always says the commonest state."""
    counts = Counter(state for states in true for state in states if state != UNTOLD)
    return max(counts.values()) / counts.total()


def segment_overlap(guessed: Sequence[str], true: Sequence[str]) -> float:
    """SOV, 0 to 1 (Zemla et al. 1999): overlaps of stretches of one state, by their length.

        sum over s1 of [sum over s2 of (both + allowance) / either * len(s1)] / N

    s1 are true stretches, s2 those guessed of the same state that meet it; `both` is what they
    share, `either` what one of them covers, and the allowance is the least of either - both, both,
    and half the length of each. N counts a true stretch once for each s2, and once without any.
    """
    reached, total = 0.0, 0
    for mine, theirs in zip(guessed, true, strict=True):
        for state, start, end in stretches(theirs):
            met = [(a, b) for s, a, b in stretches(mine) if s == state and a < end and start < b]
            total += (end - start) * max(1, len(met))
            for a, b in met:
                both, either = min(end, b) - max(start, a), max(end, b) - min(start, a)
                spare = min(either - both, both, (end - start) // 2, (b - a) // 2)
                reached += (both + spare) / either * (end - start)
    if not total:
        raise ValueError("true states are missing: there is nothing to average over")
    return reached / total


def stretches(states: str) -> list[tuple[str, int, int]]:
    """Runs of one state, with where they start and end; unknown ones are none."""
    found, start = list[tuple[str, int, int]](), 0
    for place in range(1, len(states) + 1):
        if place == len(states) or states[place] != states[start]:
            if states[start] != UNTOLD:
                found.append((states[start], start, place))
            start = place
    return found


def bounds(distances: Table, known: NDArray[np.bool_]) -> tuple[Table, Table]:
    """What triangles allow: least and greatest distances of all pairs, from those known.

    The greatest is the shortest way over known ones. The least is d(k, l) minus the ways from i to
    k and from l to j, for the known pair k, l that leaves most. Where no way leads, it is inf.
    """
    most = np.where(known, distances, np.inf)
    np.fill_diagonal(most, 0.0)
    for k in range(len(most)):
        most = np.minimum(most, most[:, k, None] + most[None, k])
    least = np.zeros_like(most)
    for one, other in zip(*np.nonzero(known), strict=True):
        ways = most[:, one, None] + most[None, other]
        spare = np.where(np.isfinite(ways), distances[one, other] - ways, 0.0)
        least = np.maximum(least, spare)
    return np.maximum(least, least.T), most


def top_precision(likely: Sequence[float], contact: Sequence[bool], count: int) -> float:
    """The share of contacts among the `count` pairs that are likeliest to be some, 0 to 1."""
    if not likely:
        raise ValueError("pairs are missing: there is nothing to average over")
    order = sorted(range(len(likely)), key=lambda pair: -likely[pair])[: max(1, count)]
    return sum(contact[pair] for pair in order) / len(order)
