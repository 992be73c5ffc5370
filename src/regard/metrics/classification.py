"""How well classes were told: from the guessed and the true class of each example.

Shares are 0 to 1. What would be 0 / 0 (a class that was never guessed, or never true) counts as 0.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class SuccessRate(NamedTuple):
    """Of trials that went well; the truth is likely `within` that of `value`."""

    value: float
    margin: float


class ClassScores(NamedTuple):
    """Of one class, against all others."""

    precision: float
    recall: float
    f1: float
    support: int  # examples that are truly of it


def accuracy(predictions: Sequence[str], targets: Sequence[str]) -> float:
    """The share of examples whose class was guessed right."""
    check_pairing(predictions, targets)
    return sum(g == t for g, t in zip(predictions, targets, strict=True)) / len(targets)


def success_rate(successes: Sequence[bool]) -> SuccessRate:
    """The mean of so many trials, and how far from it the truth is in 95 of 100 such tests."""
    if not successes:
        raise ValueError("right must be 1 or more, not 0: there is nothing to average over")
    rate = sum(successes) / len(successes)
    return SuccessRate(rate, 1.96 * math.sqrt(rate * (1 - rate) / len(successes)))


def confusion_matrix(
    predictions: Sequence[str], targets: Sequence[str], labels: Sequence[str] | None = None
) -> list[list[int]]:
    """How often each class (row) was taken for each (column), in the order of the labels."""
    check_pairing(predictions, targets)
    labels = observed_labels(predictions, targets) if labels is None else labels
    for label in observed_labels(predictions, targets):
        if label not in labels:
            raise ValueError(f"labels must name every class; {label!r} is missing")
    counts = Counter(zip(targets, predictions, strict=True))
    return [[counts[row, column] for column in labels] for row in labels]


def scores_by_class(
    predictions: Sequence[str], targets: Sequence[str], labels: Sequence[str] | None = None
) -> dict[str, ClassScores]:
    """precision = right / guessed, recall = right / true, f1 = their harmonic mean, by class.

    `labels` are the classes to be told of; by default all that were guessed or are true.
    """
    check_pairing(predictions, targets)
    labels = observed_labels(predictions, targets) if labels is None else labels
    correct_counts = Counter(t for g, t in zip(predictions, targets, strict=True) if g == t)
    predicted_counts, target_counts = Counter(predictions), Counter(targets)
    return {
        label: scores_from_counts(
            correct_counts[label], predicted_counts[label], target_counts[label]
        )
        for label in labels
    }


def macro_f1(
    predictions: Sequence[str], targets: Sequence[str], labels: Sequence[str] | None = None
) -> float:
    """The mean of the classes' F1: each class counts the same, however rare it is."""
    class_scores = scores_by_class(predictions, targets, labels).values()
    return sum(scores.f1 for scores in class_scores) / len(class_scores)


def micro_f1(
    predictions: Sequence[str], targets: Sequence[str], labels: Sequence[str] | None = None
) -> float:
    """F1 of all examples together. Of all labels it is the accuracy; of some, as without "none",
    it is not."""
    check_pairing(predictions, targets)
    included = set(observed_labels(predictions, targets) if labels is None else labels)
    correct = sum(g == t and t in included for g, t in zip(predictions, targets, strict=True))
    return scores_from_counts(
        correct, sum(g in included for g in predictions), sum(t in included for t in targets)
    ).f1


def scores_from_counts(correct: int, predicted: int, actual: int) -> ClassScores:
    """From counts: guessed and true, guessed, true."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / actual if actual else 0.0
    return ClassScores(
        precision, recall, 2 * correct / (predicted + actual) if predicted + actual else 0.0, actual
    )


def observed_labels(predictions: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Every class that was guessed or is true, in order."""
    return sorted({*predictions, *targets})


def check_pairing(predictions: Sequence[str], targets: Sequence[str]) -> None:
    if len(predictions) != len(targets):
        raise ValueError(
            f"{len(predictions)} guesses for {len(targets)} examples: give one for each"
        )
    if not targets:
        raise ValueError("true classes are missing: there is nothing to average over")
