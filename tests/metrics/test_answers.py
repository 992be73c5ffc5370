"""Tests of answer metrics: SQuAD's normalization, exact match, F1, and thresholds."""

import random

import pytest

from regard.metrics.answers import (
    answer_f1,
    answer_scores,
    best_threshold,
    exact_answer,
    normalized,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Eiffel Tower", "eiffel tower"),
        ("a an the", ""),
        ("an apple, the pear", "apple pear"),
        ("anthem", "anthem"),  # articles are complete words
        ("U.S.A.", "usa"),
        ("well-known", "wellknown"),
        ("  two \n words ", "two words"),
        ("the-end", "theend"),  # punctuation is removed before articles
        ("l'été", "lété"),
        ("«a»", "« »"),  # only ASCII punctuation, as in SQuAD's script
        ("5,000", "5000"),
    ],
)
def test_normalization(text, expected):
    assert normalized(text) == expected


def test_exact_and_overlap():
    assert exact_answer("The cat.", "cat") == 1
    assert exact_answer("cats", "cat") == 0
    assert answer_f1("the big black cat", "black cat sat") == pytest.approx(2 * 2 / (3 + 3))
    assert answer_f1("so so", "so") == pytest.approx(2 / 3)  # words are a multiset
    assert answer_f1("", "") == 1
    assert answer_f1("the", "") == 1
    assert answer_f1("", "x") == 0


def test_the_best_reference_counts():
    scores = answer_scores(["in Paris", "x"], [["Paris", "in the Paris"], ["y"]])
    assert (scores.exact, scores.f1, scores.questions) == (0.5, 0.5, 2)
    assert scores.with_answer is scores.without_answer is None


def test_unanswerable_questions():
    scores = answer_scores(["", "x", ""], [[], [], ["y"]])
    assert scores.exact == pytest.approx(1 / 3)
    assert (scores.without_answer.exact, scores.without_answer.questions) == (0.5, 2)
    assert (scores.with_answer.f1, scores.with_answer.questions) == (0.0, 1)


def test_best_threshold_matches_a_search():
    """Compare with all thresholds between two scores, by `answer_scores`."""
    rng = random.Random(3)
    for _ in range(30):
        count = rng.randint(1, 8)
        scores = [float(rng.randint(-2, 2)) for _ in range(count)]
        predictions = [rng.choice(["x", "x y", "z"]) for _ in range(count)]
        references = [rng.choice([[], ["x"], ["z", "x y"]]) for _ in range(count)]
        for metric in ("exact", "f1"):

            def mean(threshold, metric=metric, rows=(scores, predictions, references)):
                answers = [a if s >= threshold else "" for s, a in zip(*rows[:2], strict=True)]
                return getattr(answer_scores(answers, rows[2]), metric)

            best_mean = mean(best_threshold(scores, predictions, references, metric))
            assert best_mean == pytest.approx(max(map(mean, [-9, -1.5, -0.5, 0.5, 1.5, 9])))


def test_bad_input():
    with pytest.raises(ValueError, match="1 answers for 2 questions"):
        answer_scores([""], [[], []])
    with pytest.raises(ValueError, match="1 scores, 1 answers, 2 questions"):
        best_threshold([0.0], ["x"], [[], []])
    with pytest.raises(ValueError, match="no questions; give at least one"):
        answer_scores([], [])
