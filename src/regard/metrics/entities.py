"""Metrics of labeled spans, as in conlleval and in the default mode of seqeval.

A span is right if its borders and its label are. Values are 0 to 1, and 0 / 0 counts as 0.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.errors import InputError
from regard.metrics.classification import ClassScores, scores_from_counts

ENTITY_SIGNATURE = "entities|micro|conlleval|v:1"
EntitySpan = tuple[str, int, int]  # label, first word, end (exclusive)


class EntityScores(NamedTuple):
    """Metrics over all spans, and by label."""

    overall: ClassScores
    by_name: dict[str, ClassScores]


def entity_scores(
    predictions: Sequence[Iterable[EntitySpan]], targets: Sequence[Iterable[EntitySpan]]
) -> EntityScores:
    """Score the spans of each sentence; each span counts once, whatever its length."""
    if len(predictions) != len(targets):
        raise InputError(
            f"{len(predictions)} predictions for {len(targets)} sentences; give one for each"
        )
    correct_counts, predicted_counts, target_counts = Counter[str](), Counter[str](), Counter[str]()
    for predicted_spans, target_spans in zip(predictions, targets, strict=True):
        predicted, target = set(predicted_spans), set(target_spans)
        correct_counts.update(name for name, *_ in predicted & target)
        predicted_counts.update(name for name, *_ in predicted)
        target_counts.update(name for name, *_ in target)
    names = sorted({*predicted_counts, *target_counts})
    return EntityScores(
        scores_from_counts(correct_counts.total(), predicted_counts.total(), target_counts.total()),
        {
            name: scores_from_counts(
                correct_counts[name], predicted_counts[name], target_counts[name]
            )
            for name in names
        },
    )
