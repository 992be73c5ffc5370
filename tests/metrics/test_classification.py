"""Tests of classification metrics: known values, laws, and error messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics.classification import (
    accuracy,
    confusion_matrix,
    macro_f1,
    micro_f1,
    scores_by_class,
    success_rate,
)

TARGETS = ["a", "a", "a", "b", "b", "c"]
PREDICTIONS = ["a", "a", "b", "b", "c", "d"]  # d is never true


def test_known_scores():
    assert accuracy(PREDICTIONS, TARGETS) == 3 / 6
    assert confusion_matrix(PREDICTIONS, TARGETS) == [
        [2, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 0],
    ]
    scores = scores_by_class(PREDICTIONS, TARGETS)
    assert scores["a"] == pytest.approx((1, 2 / 3, 4 / 5, 3))
    assert scores["b"] == pytest.approx((1 / 2, 1 / 2, 1 / 2, 2))
    assert scores["c"] == scores["d"]._replace(support=1) == (0, 0, 0, 1)
    assert macro_f1(PREDICTIONS, TARGETS) == pytest.approx((4 / 5 + 1 / 2) / 4)
    assert macro_f1(PREDICTIONS, TARGETS, ["a", "b"]) == pytest.approx((4 / 5 + 1 / 2) / 2)


def test_micro_f1_of_a_selection():
    """Classes a and b have 3 right of 4 predicted and 5 true."""
    assert micro_f1(PREDICTIONS, TARGETS, ["a", "b"]) == pytest.approx(2 * 3 / (4 + 5))
    assert micro_f1(PREDICTIONS, TARGETS, ["e"]) == 0.0


def test_order_of_labels():
    assert confusion_matrix(["x", "y"], ["y", "y"], ["y", "x", "z"]) == [
        [1, 1, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), min_size=1))
def test_laws(pairs):
    predictions, targets = (list(side) for side in zip(*pairs, strict=True))
    table, labels = confusion_matrix(predictions, targets), sorted({*predictions, *targets})
    assert sum(map(sum, table)) == len(pairs)
    assert micro_f1(predictions, targets) == pytest.approx(accuracy(predictions, targets))
    for index, (label, scores) in enumerate(scores_by_class(predictions, targets).items()):
        assert label == labels[index]
        correct, row = table[index][index], sum(table[index])
        column = sum(row[index] for row in table)
        assert scores.support == row
        assert scores.precision == pytest.approx(correct / column if column else 0)
        assert scores.recall == pytest.approx(correct / row if row else 0)
        if scores.precision + scores.recall:
            harmonic = 2 * scores.precision * scores.recall / (scores.precision + scores.recall)
            assert scores.f1 == pytest.approx(harmonic)
        else:
            assert scores.f1 == 0
    assert macro_f1(targets, targets) == accuracy(targets, targets) == 1


@pytest.mark.parametrize(
    "metric", [accuracy, confusion_matrix, scores_by_class, macro_f1, micro_f1]
)
def test_bad_lists(metric):
    with pytest.raises(ValueError, match="1 predictions for 2 targets; give one for each"):
        metric(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="no targets; give at least one"):
        metric([], [])


def test_missing_label():
    with pytest.raises(ValueError, match="labels must contain every class; add 'b'"):
        confusion_matrix(["a"], ["b"], ["a"])


def test_success_rate():
    """100 trials with 20 failures have 0.8 +- 1.96 sqrt(0.8 0.2 / 100)."""
    rate = success_rate([True] * 80 + [False] * 20)
    assert rate.value == 0.8
    assert rate.margin == pytest.approx(0.0784)
    assert success_rate([True]).margin == 0
    with pytest.raises(ValueError, match="no trials; give at least one"):
        success_rate([])
