"""Metrics of classification, from the predicted and the true class of each example.

Values are 0 to 1. A quotient 0 / 0 (a class that is never predicted, or never true) counts as 0.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from regard.errors import InputError


class SuccessRate(NamedTuple):
    """The share of successes, with the half-width of its 95 % confidence interval."""

    value: float
    margin: float


class ClassScores(NamedTuple):
    """Metrics of one class against all others."""

    precision: float
    recall: float
    f1: float
    support: int  # examples whose true class this is


def accuracy(predictions: Sequence[str], targets: Sequence[str]) -> float:
    """Return the share of examples with the right class."""
    check_pairing(predictions, targets)
    return sum(g == t for g, t in zip(predictions, targets, strict=True)) / len(targets)


def success_rate(successes: Sequence[bool]) -> SuccessRate:
    """Return the share of successes, with 1.96 standard errors as its margin."""
    if not successes:
        raise InputError("no trials; give at least one")
    rate = sum(successes) / len(successes)
    return SuccessRate(rate, 1.96 * math.sqrt(rate * (1 - rate) / len(successes)))


def confusion_matrix(
    predictions: Sequence[str], targets: Sequence[str], labels: Sequence[str] | None = None
) -> list[list[int]]:
    """Count how often each true class (row) is predicted as each class (column)."""
    check_pairing(predictions, targets)
    labels = observed_labels(predictions, targets) if labels is None else labels
    for label in observed_labels(predictions, targets):
        if label not in labels:
            raise InputError(f"labels must contain every class; add {label!r}")
    counts = Counter(zip(targets, predictions, strict=True))
    return [[counts[row, column] for column in labels] for row in labels]


def scores_by_class(
    predictions: Sequence[str], targets: Sequence[str], labels: Sequence[str] | None = None
) -> dict[str, ClassScores]:
    """precision = right / predicted, recall = right / true, f1 = their harmonic mean, by class.

    `labels` are the classes to score; by default all that are predicted or true.
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
    """Return the mean F1 of the classes, without weights for their frequency."""
    class_scores = scores_by_class(predictions, targets, labels).values()
    return sum(scores.f1 for scores in class_scores) / len(class_scores)


def micro_f1(
    predictions: Sequence[str], targets: Sequence[str], labels: Sequence[str] | None = None
) -> float:
    """Return F1 over the counts of all classes in `labels`.

    Over all classes it equals the accuracy; over a selection, such as all but "none", it does not.
    """
    check_pairing(predictions, targets)
    included = set(observed_labels(predictions, targets) if labels is None else labels)
    correct = sum(g == t and t in included for g, t in zip(predictions, targets, strict=True))
    return scores_from_counts(
        correct, sum(g in included for g in predictions), sum(t in included for t in targets)
    ).f1


def scores_from_counts(correct: int, predicted: int, actual: int) -> ClassScores:
    precision = correct / predicted if predicted else 0.0
    recall = correct / actual if actual else 0.0
    return ClassScores(
        precision, recall, 2 * correct / (predicted + actual) if predicted + actual else 0.0, actual
    )


def observed_labels(predictions: Sequence[str], targets: Sequence[str]) -> list[str]:
    return sorted({*predictions, *targets})


def check_pairing(predictions: Sequence[str], targets: Sequence[str]) -> None:
    if len(predictions) != len(targets):
        raise InputError(
            f"{len(predictions)} predictions for {len(targets)} targets; give one for each"
        )
    if not targets:
        raise InputError("no targets; give at least one")
