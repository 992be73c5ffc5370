"""Varied replies, and offers that are as wished."""

import pytest

from regard.metric.dialogue import distinct, matched


def test_distinct():
    assert distinct(["a b a", "a b"], 1) == 2 / 5
    assert distinct(["a b a", "a b"], 2) == 2 / 3
    assert distinct(["a"], 2) == 0.0
    with pytest.raises(ValueError, match="size must be 1 or more"):
        distinct(["a"], 0)


def test_matched():
    offers = [{"food": "Thai", "area": "east"}, None, {"food": "greek"}, {"food": "greek"}]
    goals = [{"food": "thai", "area": "any"}, {}, {"food": "thai"}, {"food": "greek"}]
    assert matched(offers, goals) == 0.5
    with pytest.raises(ValueError, match="give one for each"):
        matched(offers, goals[:2])
