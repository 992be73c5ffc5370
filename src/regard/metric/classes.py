"""How well classes were told: from the guessed and the true class of each example.

Shares are 0 to 1. What would be 0 / 0 (a class that was never guessed, or never true) counts as 0.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Share(NamedTuple):
    """Of trials that went well; the truth is likely `within` that of `value`."""

    value: float
    within: float


class Scores(NamedTuple):
    """Of one class, against all others."""

    precision: float
    recall: float
    f1: float
    support: int  # examples that are truly of it


def accuracy(guessed: Sequence[str], true: Sequence[str]) -> float:
    """The share of examples whose class was guessed right."""
    check(guessed, true)
    return sum(g == t for g, t in zip(guessed, true, strict=True)) / len(true)


def share_right(right: Sequence[bool]) -> Share:
    """The mean of so many trials, and how far from it the truth is in 95 of 100 such tests."""
    if not right:
        raise ValueError("right must be 1 or more, not 0: there is nothing to average over")
    share = sum(right) / len(right)
    return Share(share, 1.96 * math.sqrt(share * (1 - share) / len(right)))


def confusion(
    guessed: Sequence[str], true: Sequence[str], labels: Sequence[str] | None = None
) -> list[list[int]]:
    """How often each class (row) was taken for each (column), in the order of the labels."""
    check(guessed, true)
    labels = labels_of(guessed, true) if labels is None else labels
    for label in labels_of(guessed, true):
        if label not in labels:
            raise ValueError(f"labels must name every class; {label!r} is missing")
    counts = Counter(zip(true, guessed, strict=True))
    return [[counts[row, column] for column in labels] for row in labels]


def by_class(
    guessed: Sequence[str], true: Sequence[str], labels: Sequence[str] | None = None
) -> dict[str, Scores]:
    """precision = right / guessed, recall = right / true, f1 = their harmonic mean, by class.

    `labels` are the classes to be told of; by default all that were guessed or are true.
    """
    check(guessed, true)
    labels = labels_of(guessed, true) if labels is None else labels
    right = Counter(t for g, t in zip(guessed, true, strict=True) if g == t)
    said, there = Counter(guessed), Counter(true)
    return {label: scores(right[label], said[label], there[label]) for label in labels}


def macro_f1(
    guessed: Sequence[str], true: Sequence[str], labels: Sequence[str] | None = None
) -> float:
    """The mean of the classes' F1: each class counts the same, however rare it is."""
    each = by_class(guessed, true, labels).values()
    return sum(one.f1 for one in each) / len(each)


def micro_f1(
    guessed: Sequence[str], true: Sequence[str], labels: Sequence[str] | None = None
) -> float:
    """F1 of all examples together. Of all labels it is the accuracy; of some, as without "none",
    it is not."""
    check(guessed, true)
    kept = set(labels_of(guessed, true) if labels is None else labels)
    right = sum(g == t and t in kept for g, t in zip(guessed, true, strict=True))
    return scores(right, sum(g in kept for g in guessed), sum(t in kept for t in true)).f1


def scores(right: int, said: int, there: int) -> Scores:
    """From counts: guessed and true, guessed, true."""
    precision = right / said if said else 0.0
    recall = right / there if there else 0.0
    return Scores(precision, recall, 2 * right / (said + there) if said + there else 0.0, there)


def labels_of(guessed: Sequence[str], true: Sequence[str]) -> list[str]:
    """Every class that was guessed or is true, in order."""
    return sorted({*guessed, *true})


def check(guessed: Sequence[str], true: Sequence[str]) -> None:
    if len(guessed) != len(true):
        raise ValueError(f"{len(guessed)} guesses for {len(true)} examples: give one for each")
    if not true:
        raise ValueError("true classes are missing: there is nothing to average over")
