"""Scores of classes, by hand and against an independent count."""

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

TRUE = ["a", "a", "a", "b", "b", "c"]
GUESSED = ["a", "a", "b", "b", "c", "d"]  # d is never true


def test_by_hand():
    assert accuracy(GUESSED, TRUE) == 3 / 6
    assert confusion_matrix(GUESSED, TRUE) == [
        [2, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 0],
    ]
    found = scores_by_class(GUESSED, TRUE)
    assert found["a"] == pytest.approx((1, 2 / 3, 4 / 5, 3))
    assert found["b"] == pytest.approx((1 / 2, 1 / 2, 1 / 2, 2))
    assert found["c"] == found["d"]._replace(support=1) == (0, 0, 0, 1)
    assert macro_f1(GUESSED, TRUE) == pytest.approx((4 / 5 + 1 / 2) / 4)
    assert macro_f1(GUESSED, TRUE, ["a", "b"]) == pytest.approx((4 / 5 + 1 / 2) / 2)


def test_micro_of_some():
    """Of a and b: 3 right of 4 guessed and 5 true."""
    assert micro_f1(GUESSED, TRUE, ["a", "b"]) == pytest.approx(2 * 3 / (4 + 5))
    assert micro_f1(GUESSED, TRUE, ["e"]) == 0.0


def test_the_order_of_labels():
    assert confusion_matrix(["x", "y"], ["y", "y"], ["y", "x", "z"]) == [
        [1, 1, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), min_size=1))
def test_laws(pairs):
    guessed, true = (list(side) for side in zip(*pairs, strict=True))
    table, labels = confusion_matrix(guessed, true), sorted({*guessed, *true})
    assert sum(map(sum, table)) == len(pairs)
    assert micro_f1(guessed, true) == pytest.approx(accuracy(guessed, true))
    for place, (label, one) in enumerate(scores_by_class(guessed, true).items()):
        assert label == labels[place]
        right, row = table[place][place], sum(table[place])
        column = sum(row[place] for row in table)
        assert one.support == row
        assert one.precision == pytest.approx(right / column if column else 0)
        assert one.recall == pytest.approx(right / row if row else 0)
        if one.precision + one.recall:
            harmonic = 2 * one.precision * one.recall / (one.precision + one.recall)
            assert one.f1 == pytest.approx(harmonic)
        else:
            assert one.f1 == 0
    assert macro_f1(true, true) == accuracy(true, true) == 1


@pytest.mark.parametrize(
    "metric", [accuracy, confusion_matrix, scores_by_class, macro_f1, micro_f1]
)
def test_wrong_lists(metric):
    with pytest.raises(ValueError, match="1 guesses for 2 examples: give one for each"):
        metric(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="nothing to average over"):
        metric([], [])


def test_a_class_without_a_row():
    with pytest.raises(ValueError, match="labels must name every class; 'b' is missing"):
        confusion_matrix(["a"], ["b"], ["a"])


def test_a_share_has_an_interval():
    """Of 100 trials with 20 failures: 0.8 +- 1.96 sqrt(0.8 0.2 / 100)."""
    found = success_rate([True] * 80 + [False] * 20)
    assert found.value == 0.8
    assert found.margin == pytest.approx(0.0784)
    assert success_rate([True]).margin == 0
    with pytest.raises(ValueError, match="right must be 1 or more, not 0"):
        success_rate([])
