"""Metrics of extractive question answering, as in SQuAD's evaluation script.

Answers are compared in lower case, without punctuation, without the articles a, an and the, and
with single spaces. With several references, the best one counts. The empty answer "" is right only
for unanswerable questions. Values are 0 to 1.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from regard.errors import InputError

ANSWER_SIGNATURE = "squad|normalized|best of the true answers|v:1"
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


class AnswerScores(NamedTuple):
    """Means over all questions, and over answerable and unanswerable ones if there are both."""

    exact: float
    f1: float
    questions: int
    with_answer: "AnswerScores | None" = None
    without_answer: "AnswerScores | None" = None


def normalized(answer: str) -> str:
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def exact_answer(prediction: str, reference: str) -> float:
    return float(normalized(prediction) == normalized(reference))


def answer_f1(prediction: str, reference: str) -> float:
    """Return F1 over the multiset of words; with no words on one side, 1 if both are empty."""
    predicted_words, reference_words = normalized(prediction).split(), normalized(reference).split()
    if not predicted_words or not reference_words:
        return float(predicted_words == reference_words)
    common = (Counter(predicted_words) & Counter(reference_words)).total()
    return 2 * common / (len(predicted_words) + len(reference_words))


def answer_scores(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> AnswerScores:
    """Score one answer a question; `references` are all accepted answers, or an empty list."""
    if len(predictions) != len(references):
        raise InputError(
            f"{len(predictions)} answers for {len(references)} questions; give one for each"
        )
    if not references:
        raise InputError("no questions; give at least one")
    accepted_answers = [accepted or [""] for accepted in references]
    rows = [
        (
            max(exact_answer(prediction, answer) for answer in accepted),
            max(answer_f1(prediction, answer) for answer in accepted),
        )
        for prediction, accepted in zip(predictions, accepted_answers, strict=True)
    ]
    is_answerable = [any(map(normalized, accepted)) for accepted in accepted_answers]
    if all(is_answerable):
        return mean_answer_scores(rows)
    rows_by_answerable = {
        has_answer: [
            row
            for row, answerable in zip(rows, is_answerable, strict=True)
            if answerable == has_answer
        ]
        for has_answer in (True, False)
    }
    with_answer, without_answer = (
        mean_answer_scores(rows_by_answerable[has_answer])
        if rows_by_answerable[has_answer]
        else None
        for has_answer in (True, False)
    )
    return mean_answer_scores(rows)._replace(with_answer=with_answer, without_answer=without_answer)


def best_threshold(
    scores: Sequence[float],
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    metric: str = "f1",
) -> float:
    """Return the score threshold with the best mean of `metric` ("exact" or "f1").

    Answers with a lower score are replaced by no answer. Of equally good thresholds, the highest is
    returned.
    """
    if not len(scores) == len(predictions) == len(references):
        raise InputError(
            f"{len(scores)} scores, {len(predictions)} answers, {len(references)} questions; "
            "give equally many"
        )
    measure = exact_answer if metric == "exact" else answer_f1
    gains = sorted(
        (
            (score, max(measure(prediction, answer) for answer in accepted) if accepted else -1.0)
            for score, prediction, accepted in zip(scores, predictions, references, strict=True)
        ),
        reverse=True,
    )
    best_total, total, threshold = 0.0, 0.0, gains[0][0] + 1.0 if gains else 0.0
    for count, (score, gain) in enumerate(gains, 1):
        total += gain
        next_score = gains[count][0] if count < len(gains) else score - 2.0
        if total > best_total and next_score < score:
            best_total, threshold = total, (score + next_score) / 2
    return threshold


def mean_answer_scores(rows: Sequence[tuple[float, float]]) -> AnswerScores:
    exact_mean, f1_mean = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return AnswerScores(exact_mean, f1_mean, len(rows))
