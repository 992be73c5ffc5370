"""Tests of tag schemes: known cases, round trips, and violations."""

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
    ("tags", "spans"),
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
def test_spans(tags, spans):
    assert spans_from_tags(tags.split()) == spans


def test_schemes_by_hand():
    spans = [TagSpan("x", 0, 2), TagSpan("x", 2, 3), TagSpan("y", 4, 5)]
    assert tags_from_spans(spans, 6) == ["B-x", "I-x", "B-x", "O", "B-y", "O"]
    assert tags_from_spans(spans, 6, "iob1") == ["I-x", "I-x", "B-x", "O", "I-y", "O"]
    assert tags_from_spans(spans, 6, "bioes") == ["B-x", "E-x", "S-x", "O", "S-y", "O"]


@st.composite
def span_lists(draw):
    spans, end = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = end + draw(st.integers(0, 2))
        end = start + draw(st.integers(1, 3))
        spans.append(TagSpan(draw(st.sampled_from(["x", "y", "a-b"])), start, end))
    return spans, end + draw(st.integers(0, 2))


@given(span_lists(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_round_trip(given_spans, scheme, other_scheme):
    spans, length = given_spans
    tags = tags_from_spans(spans, length, scheme)
    assert spans_from_tags(tags) == spans
    assert find_violation(tags, scheme) is None
    assert convert_tags(convert_tags(tags, scheme, other_scheme), other_scheme, scheme) == tags


@pytest.mark.parametrize(
    ("tags", "scheme", "index", "reason"),
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
def test_violations(tags, scheme, index, reason):
    violation_index, violation_reason = find_violation(tags.split(), scheme)
    assert violation_index == index
    assert reason in violation_reason


@pytest.mark.parametrize("scheme", SCHEMES)
def test_valid_tags_are_those_that_their_spans_reproduce(scheme):
    """Check all sequences of three tags."""
    tags = ["O", *(f"{letter}-{name}" for letter in SCHEME_LETTERS[scheme] for name in "xy")]
    valid_count = 0
    for row in product(tags, repeat=3):
        is_valid = tags_from_spans(spans_from_tags(row), 3, scheme) == list(row)
        assert (find_violation(row, scheme) is None) == is_valid, row
        ends = ["O", *row, "O"]
        assert all(can_follow(a, b, scheme) for a, b in pairwise(ends)) == is_valid, row
        valid_count += is_valid
    assert 0 < valid_count < len(tags) ** 3


def test_bad_spans():
    with pytest.raises(ValueError, match="overlaps"):
        tags_from_spans([TagSpan("x", 0, 2), TagSpan("x", 1, 3)], 4)
    with pytest.raises(ValueError, match="outside the 2 words"):
        tags_from_spans([TagSpan("x", 0, 3)], 2)
