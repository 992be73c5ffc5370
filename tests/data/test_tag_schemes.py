"""Tags by hand, and there and back in every scheme."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.tag_schemes import (
    SCHEME_LETTERS,
    TagSpan,
    can_follow,
    convert_tags,
    find_violation,
    spans_from_tags,
    tags_from_spans,
)

SCHEMES = ("bio", "iob1", "bioes")


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O O", []),
        ("B-x I-x O B-y", [TagSpan("x", 0, 2), TagSpan("y", 3, 4)]),
        ("I-x I-x B-x I-y", [TagSpan("x", 0, 2), TagSpan("x", 2, 3), TagSpan("y", 3, 4)]),
        ("B-x B-x", [TagSpan("x", 0, 1), TagSpan("x", 1, 2)]),
        ("O I-x O", [TagSpan("x", 1, 2)]),  # as conlleval reads it
        ("S-x B-x E-x S-x", [TagSpan("x", 0, 1), TagSpan("x", 1, 3), TagSpan("x", 3, 4)]),
        ("E-x E-x", [TagSpan("x", 0, 1), TagSpan("x", 1, 2)]),
        ("B-a-b I-a-b", [TagSpan("a-b", 0, 2)]),
    ],
)
def test_spans(tags, found):
    assert spans_from_tags(tags.split()) == found


def test_schemes_by_hand():
    found = [TagSpan("x", 0, 2), TagSpan("x", 2, 3), TagSpan("y", 4, 5)]
    assert tags_from_spans(found, 6) == ["B-x", "I-x", "B-x", "O", "B-y", "O"]
    assert tags_from_spans(found, 6, "iob1") == ["I-x", "I-x", "B-x", "O", "I-y", "O"]
    assert tags_from_spans(found, 6, "bioes") == ["B-x", "E-x", "S-x", "O", "S-y", "O"]


@st.composite
def stretches(draw):
    found, at = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = at + draw(st.integers(0, 2))
        at = start + draw(st.integers(1, 3))
        found.append(TagSpan(draw(st.sampled_from(["x", "y", "a-b"])), start, at))
    return found, at + draw(st.integers(0, 2))


@given(stretches(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_there_and_back(given_spans, one, other):
    found, length = given_spans
    tags = tags_from_spans(found, length, one)
    assert spans_from_tags(tags) == found
    assert find_violation(tags, one) is None
    assert convert_tags(convert_tags(tags, one, other), other, one) == tags


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
    place, reason = find_violation(tags.split(), scheme)
    assert place == at
    assert why in reason


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_row_is_well_if_it_says_what_its_stretches_do(scheme):
    """All rows of three tags."""
    tags = ["O", *(f"{letter}-{name}" for letter in SCHEME_LETTERS[scheme] for name in "xy")]
    well = 0
    for row in product(tags, repeat=3):
        same = tags_from_spans(spans_from_tags(row), 3, scheme) == list(row)
        assert (find_violation(row, scheme) is None) == same, row
        ends = ["O", *row, "O"]
        assert all(can_follow(a, b, scheme) for a, b in pairwise(ends)) == same, row
        well += same
    assert 0 < well < len(tags) ** 3


def test_bad_spans():
    with pytest.raises(ValueError, match="overlaps"):
        tags_from_spans([TagSpan("x", 0, 2), TagSpan("x", 1, 3)], 4)
    with pytest.raises(ValueError, match="within 2 words"):
        tags_from_spans([TagSpan("x", 0, 3)], 2)
