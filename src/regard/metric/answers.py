"""How well questions were answered by stretches of text, as SQuAD's own script counts.

Before answers are compared they are put in lower case, and lose punctuation, the articles a, an and
the, and all space but one between words. With several true answers the best one counts. No answer
("") is right only where there is none. Shares are 0 to 1.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

SIGNATURE = "squad|normalised|best of the true answers|v:1"
ARTICLES = re.compile(r"\b(a|an|the)\b")
MARKS = str.maketrans("", "", string.punctuation)


class Answered(NamedTuple):
    """Means over questions; of those that have an answer and those that have none, if there are."""

    exact: float
    f1: float
    questions: int
    with_answer: "Answered | None" = None
    without: "Answered | None" = None


def normalised(answer: str) -> str:
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(MARKS)).split())


def exact(said: str, true: str) -> float:
    return float(normalised(said) == normalised(true))


def overlap(said: str, true: str) -> float:
    """F1 of the words, each as often as it comes; of two answers without words, 1 if both are."""
    mine, theirs = normalised(said).split(), normalised(true).split()
    if not mine or not theirs:
        return float(mine == theirs)
    both = (Counter(mine) & Counter(theirs)).total()
    return 2 * both / (len(mine) + len(theirs))


def answered(said: Sequence[str], true: Sequence[Sequence[str]]) -> Answered:
    """An answer for each question; `true` has all that are accepted, none where there is none."""
    if len(said) != len(true):
        raise ValueError(f"{len(said)} answers for {len(true)} questions: give one for each")
    if not true:
        raise ValueError("questions are missing: there is nothing to average over")
    each = [some or [""] for some in true]
    rows = [
        (max(exact(mine, one) for one in some), max(overlap(mine, one) for one in some))
        for mine, some in zip(said, each, strict=True)
    ]
    known = [any(map(normalised, some)) for some in each]
    if all(known):
        return mean(rows)
    parts = {
        has: [row for row, there in zip(rows, known, strict=True) if there == has]
        for has in (True, False)
    }
    with_answer, without = (mean(parts[has]) if parts[has] else None for has in (True, False))
    return mean(rows)._replace(with_answer=with_answer, without=without)


def best_threshold(
    scores: Sequence[float], said: Sequence[str], true: Sequence[Sequence[str]], by: str = "f1"
) -> float:
    """The score from which on an answer should be given, for the best mean by `exact` or `f1`.

    A question whose answer scores less is left without. Of equally good ones it is the highest.
    """
    if not len(scores) == len(said) == len(true):
        raise ValueError(f"{len(scores)} scores, {len(said)} answers, {len(true)} questions")
    measure = exact if by == "exact" else overlap
    gains = sorted(
        (
            (score, max(measure(mine, one) for one in some) if some else -1.0)
            for score, mine, some in zip(scores, said, true, strict=True)
        ),
        reverse=True,
    )
    best, total, cut = 0.0, 0.0, gains[0][0] + 1.0 if gains else 0.0
    for number, (score, gain) in enumerate(gains, 1):
        total += gain
        below = gains[number][0] if number < len(gains) else score - 2.0
        if total > best and below < score:
            best, cut = total, (score + below) / 2
    return cut


def mean(rows: Sequence[tuple[float, float]]) -> Answered:
    first, second = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return Answered(first, second, len(rows))
