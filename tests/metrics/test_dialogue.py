"""Tests of dialogue metrics: distinct n-grams and entity match."""

import pytest

from regard.metrics.dialogue import distinct_ngrams, entity_match


def test_distinct_ngrams():
    assert distinct_ngrams(["a b a", "a b"], 1) == 2 / 5
    assert distinct_ngrams(["a b a", "a b"], 2) == 2 / 3
    assert distinct_ngrams(["a"], 2) == 0.0
    with pytest.raises(ValueError, match="size must be at least 1"):
        distinct_ngrams(["a"], 0)


def test_entity_match():
    offers = [{"food": "Thai", "area": "east"}, None, {"food": "greek"}, {"food": "greek"}]
    goals = [{"food": "thai", "area": "any"}, {}, {"food": "thai"}, {"food": "greek"}]
    assert entity_match(offers, goals) == 0.5
    with pytest.raises(ValueError, match="give one for each"):
        entity_match(offers, goals[:2])
