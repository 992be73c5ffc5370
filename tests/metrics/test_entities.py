"""Found stretches by hand; the figures are seqeval's, too."""

import pytest

from regard.data.tag_schemes import spans_from_tags
from regard.metrics.entities import entity_scores

TRUE = ["O O O B-misc I-misc I-misc O", "B-per I-per O"]
GUESSED = ["O O B-misc I-misc I-misc I-misc O", "B-per I-per O"]


def found(rows: list[str]):
    return [spans_from_tags(row.split()) for row in rows]


def test_by_hand():
    """The example of seqeval's own page: half of all stretches are right."""
    whole, by_name = entity_scores(found(GUESSED), found(TRUE))
    assert (whole.precision, whole.recall, whole.f1, whole.support) == (0.5, 0.5, 0.5, 2)
    assert by_name["misc"].f1 == 0.0
    assert by_name["per"].f1 == 1.0


def test_the_name_has_to_be_right_too():
    whole, by_name = entity_scores(found(["B-x O B-y", "B-x"]), found(["B-y O B-y", "O"]))
    assert whole.precision == pytest.approx(1 / 3)
    assert whole.recall == 0.5
    assert whole.f1 == pytest.approx(0.4)
    assert by_name["x"] == (0.0, 0.0, 0.0, 0)


def test_nothing_there():
    assert entity_scores([[]], [[]]).overall == (0.0, 0.0, 0.0, 0)
    with pytest.raises(ValueError, match="1 guesses for 2 sentences"):
        entity_scores([[]], [[], []])
