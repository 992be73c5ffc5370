"""Predicted answers: spans of a context with their scores, or no answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.files import JsonObject
from regard.tasks.base import Prediction

MAX_CANDIDATES = 5  # answers in a prediction
NO_ANSWER = "no answer"


class AnswerSpan(NamedTuple):
    """context[start:end], its probability, and the logarithm of its odds against no answer."""

    text: str
    start: int
    end: int
    probability: float
    score: float


@dataclass(frozen=True)
class AnswerPrediction(Prediction):
    """The answer (None for no answer), the best candidates, and the probability of no answer.

    `text` is the context on one line, with the answer in brackets.
    """

    context: str = ""
    span: AnswerSpan | None = None
    candidates: tuple[AnswerSpan, ...] = ()
    no_answer_probability: float = 0.0

    @property
    def answer(self) -> str:
        return "" if self.span is None else self.span.text

    @property
    def spans(self) -> tuple[tuple[str, str], ...]:
        if self.span is None:
            return ((f"{NO_ANSWER}:", ""), (self.context, ""))
        before, after = self.context[: self.span.start], self.context[self.span.end :]
        parts = ((before, ""), (self.span.text, "answer"), (after, ""))
        return tuple((text.strip(), name) for text, name in parts if text.strip())

    def as_dict(self) -> JsonObject:
        span: JsonObject = {} if self.span is None else self.span._asdict()
        return {
            "answer": self.answer,
            **{name: span.get(name) for name in ("start", "end", "probability", "score")},
            "no_answer": self.no_answer_probability,
            "answers": [candidate._asdict() for candidate in self.candidates],
            "context": self.context,
        }

    def with_threshold(self, threshold: float) -> "AnswerPrediction":
        """Return the prediction with no answer if the best candidate scores below `threshold`."""
        return to_prediction(self.context, self.candidates, self.no_answer_probability, threshold)


def to_prediction(
    context: str,
    candidates: Sequence[AnswerSpan],
    no_answer_probability: float = 0.0,
    threshold: float = -math.inf,
) -> AnswerPrediction:
    """Return the best candidate as the answer, unless its score is below `threshold`."""
    has_answer = bool(candidates) and candidates[0].score >= threshold
    span = candidates[0] if has_answer else None
    text = bracketed(context, span)
    return AnswerPrediction(text, context, span, tuple(candidates), no_answer_probability)


def bracketed(context: str, span: AnswerSpan | None) -> str:
    """Return the context on one line, with the answer in brackets."""
    if span is None:
        return " ".join(f"{NO_ANSWER}: {context}".split())
    return " ".join(f"{context[: span.start]}[{span.text}]{context[span.end :]}".split())


def trim_span(text: str, start: int, end: int, probability: float, score: float) -> AnswerSpan:
    """Return text[start:end] without the white space at its ends that some tokens include."""
    answer = text[start:end]
    start += len(answer) - len(answer.lstrip())
    answer = answer.strip()
    return AnswerSpan(answer, start, start + len(answer), probability, score)


def log_sum_exp(scores: Sequence[float]) -> float:
    """log sum exp(score); -inf without scores."""
    top = max(scores, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(sum(math.exp(score - top) for score in scores))
