"""Tags by hand, and there and back in every scheme."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpora.tags import LETTERS, Span, broken, converted, follows, spans, tags_of

SCHEMES = ("bio", "iob1", "bioes")


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O O", []),
        ("B-x I-x O B-y", [Span("x", 0, 2), Span("y", 3, 4)]),
        ("I-x I-x B-x I-y", [Span("x", 0, 2), Span("x", 2, 3), Span("y", 3, 4)]),
        ("B-x B-x", [Span("x", 0, 1), Span("x", 1, 2)]),
        ("O I-x O", [Span("x", 1, 2)]),  # as conlleval reads it
        ("S-x B-x E-x S-x", [Span("x", 0, 1), Span("x", 1, 3), Span("x", 3, 4)]),
        ("E-x E-x", [Span("x", 0, 1), Span("x", 1, 2)]),
        ("B-a-b I-a-b", [Span("a-b", 0, 2)]),
    ],
)
def test_spans(tags, found):
    assert spans(tags.split()) == found


def test_schemes_by_hand():
    found = [Span("x", 0, 2), Span("x", 2, 3), Span("y", 4, 5)]
    assert tags_of(found, 6) == ["B-x", "I-x", "B-x", "O", "B-y", "O"]
    assert tags_of(found, 6, "iob1") == ["I-x", "I-x", "B-x", "O", "I-y", "O"]
    assert tags_of(found, 6, "bioes") == ["B-x", "E-x", "S-x", "O", "S-y", "O"]


@st.composite
def stretches(draw):
    found, at = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = at + draw(st.integers(0, 2))
        at = start + draw(st.integers(1, 3))
        found.append(Span(draw(st.sampled_from(["x", "y", "a-b"])), start, at))
    return found, at + draw(st.integers(0, 2))


@given(stretches(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_there_and_back(given_spans, one, other):
    found, length = given_spans
    tags = tags_of(found, length, one)
    assert spans(tags) == found
    assert broken(tags, one) is None
    assert converted(converted(tags, one, other), other, one) == tags


@pytest.mark.parametrize(
    ("tags", "scheme", "at", "why"),
    [
        ("O I-x", "bio", 1, "I-x after O"),
        ("I-x", "bio", 0, "I-x after the start"),
        ("B-x I-y", "bio", 1, "I-y after B-x"),
        ("O E-x", "bio", 1, "'E-x' is not one of B-X, I-X or O"),
        ("B-", "bio", 0, "'B-' is not one of"),
        ("o", "bio", 0, "'o' is not one of"),
        ("I-x O B-x", "iob1", 2, "B-x after O"),
        ("B-x O", "bioes", 1, "O after B-x"),
        ("S-x B-x I-x", "bioes", 2, "the end after I-x"),
        ("B-x E-x I-x", "bioes", 2, "I-x after E-x"),
    ],
)
def test_broken(tags, scheme, at, why):
    place, reason = broken(tags.split(), scheme)
    assert place == at
    assert why in reason


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_row_is_well_if_it_says_what_its_stretches_do(scheme):
    """All rows of three tags."""
    tags = ["O", *(f"{letter}-{name}" for letter in LETTERS[scheme] for name in "xy")]
    well = 0
    for row in product(tags, repeat=3):
        same = tags_of(spans(row), 3, scheme) == list(row)
        assert (broken(row, scheme) is None) == same, row
        ends = ["O", *row, "O"]
        assert all(follows(a, b, scheme) for a, b in pairwise(ends)) == same, row
        well += same
    assert 0 < well < len(tags) ** 3


def test_bad_spans():
    with pytest.raises(ValueError, match="overlaps"):
        tags_of([Span("x", 0, 2), Span("x", 1, 3)], 4)
    with pytest.raises(ValueError, match="within 2 words"):
        tags_of([Span("x", 0, 3)], 2)
