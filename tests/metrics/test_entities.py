"""Tests of entity metrics; the numbers are those of seqeval."""

import pytest

from regard.data.tag_schemes import spans_from_tags
from regard.metrics.entities import entity_scores

TARGETS = ["O O O B-misc I-misc I-misc O", "B-per I-per O"]
PREDICTIONS = ["O O B-misc I-misc I-misc I-misc O", "B-per I-per O"]


def spans(rows: list[str]):
    return [spans_from_tags(row.split()) for row in rows]


def test_example_of_seqeval():
    """In the example of seqeval's documentation, half of all spans are right."""
    overall, by_name = entity_scores(spans(PREDICTIONS), spans(TARGETS))
    assert (overall.precision, overall.recall, overall.f1, overall.support) == (0.5, 0.5, 0.5, 2)
    assert by_name["misc"].f1 == 0.0
    assert by_name["per"].f1 == 1.0


def test_labels_must_match():
    overall, by_name = entity_scores(spans(["B-x O B-y", "B-x"]), spans(["B-y O B-y", "O"]))
    assert overall.precision == pytest.approx(1 / 3)
    assert overall.recall == 0.5
    assert overall.f1 == pytest.approx(0.4)
    assert by_name["x"] == (0.0, 0.0, 0.0, 0)


def test_no_spans():
    assert entity_scores([[]], [[]]).overall == (0.0, 0.0, 0.0, 0)
    with pytest.raises(ValueError, match="1 predictions for 2 sentences"):
        entity_scores([[]], [[], []])
