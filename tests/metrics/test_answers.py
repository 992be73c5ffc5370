"""Answers by hand, at the edges of SQuAD's normalisation."""

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
    ("text", "left"),
    [
        ("The Eiffel Tower", "eiffel tower"),
        ("a an the", ""),
        ("an apple, the pear", "apple pear"),
        ("anthem", "anthem"),  # an article is a word of its own
        ("U.S.A.", "usa"),
        ("well-known", "wellknown"),
        ("  two \n words ", "two words"),
        ("the-end", "theend"),  # marks go before articles do
        ("l'été", "lété"),
        ("«a»", "« »"),  # only the marks of ASCII, as in their script
        ("5,000", "5000"),
    ],
)
def test_normalised(text, left):
    assert normalized(text) == left


def test_exact_and_overlap():
    assert exact_answer("The cat.", "cat") == 1
    assert exact_answer("cats", "cat") == 0
    assert answer_f1("the big black cat", "black cat sat") == pytest.approx(2 * 2 / (3 + 3))
    assert answer_f1("so so", "so") == pytest.approx(2 / 3)  # each word as often as it comes
    assert answer_f1("", "") == 1
    assert answer_f1("the", "") == 1
    assert answer_f1("", "x") == 0


def test_the_best_of_the_true_answers_counts():
    found = answer_scores(["in Paris", "x"], [["Paris", "in the Paris"], ["y"]])
    assert (found.exact, found.f1, found.questions) == (0.5, 0.5, 2)
    assert found.with_answer is found.without_answer is None


def test_questions_without_an_answer():
    found = answer_scores(["", "x", ""], [[], [], ["y"]])
    assert found.exact == pytest.approx(1 / 3)
    assert (found.without_answer.exact, found.without_answer.questions) == (0.5, 2)
    assert (found.with_answer.f1, found.with_answer.questions) == (0.0, 1)


def test_the_best_threshold_is_the_best_of_all():
    """Against every threshold between two scores, by what `answered` says of it."""
    draw = random.Random(3)
    for _ in range(30):
        count = draw.randint(1, 8)
        scores = [float(draw.randint(-2, 2)) for _ in range(count)]
        said = [draw.choice(["x", "x y", "z"]) for _ in range(count)]
        true = [draw.choice([[], ["x"], ["z", "x y"]]) for _ in range(count)]
        for by in ("exact", "f1"):

            def mean(threshold, by=by, rows=(scores, said, true)):
                given = [a if s >= threshold else "" for s, a in zip(*rows[:2], strict=True)]
                return getattr(answer_scores(given, rows[2]), by)

            found = mean(best_threshold(scores, said, true, by))
            assert found == pytest.approx(max(map(mean, [-9, -1.5, -0.5, 0.5, 1.5, 9])))


def test_bad_input():
    with pytest.raises(ValueError, match="1 answers for 2 questions"):
        answer_scores([""], [[], []])
    with pytest.raises(ValueError, match="1 scores, 1 answers, 2 questions"):
        best_threshold([0.0], ["x"], [[], []])
    with pytest.raises(ValueError, match="questions are missing"):
        answer_scores([], [])
