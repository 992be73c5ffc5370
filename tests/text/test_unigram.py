"""Tests of the unigram model against sums over all segmentations of a word."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text import unigram
from regard.text.unigram import Lattice, train_unigram

words = st.text("abc", min_size=1, max_size=7)


def segmentations(word):
    """Yield all segmentations of a word."""
    for cut_flags in product([False, True], repeat=len(word) - 1):
        positions = [0, *(n for n, is_cut in enumerate(cut_flags, 1) if is_cut), len(word)]
        yield [word[a:b] for a, b in pairwise(positions)]


def reference_counts(word_list, pieces, scores, counts):
    """Return expected counts and the best log-probabilities by enumeration."""
    expected, best = dict.fromkeys(pieces, 0.0), []
    table = dict(zip(pieces, scores, strict=True))
    for word, count in zip(word_list, counts, strict=True):
        possible = [
            segmentation
            for segmentation in segmentations(word)
            if all(piece in table for piece in segmentation)
        ]
        probabilities = [
            math.exp(sum(table[piece] for piece in segmentation)) for segmentation in possible
        ]
        best.append(math.log(max(probabilities)))
        for segmentation, probability in zip(possible, probabilities, strict=True):
            for piece in segmentation:
                expected[piece] += count * probability / sum(probabilities)
    return [expected[piece] for piece in pieces], best


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=5), st.sets(words, max_size=6), st.data())
def test_expected_counts_match_enumeration(word_list, longer, data):
    pieces = sorted({"a", "b", "c"} | longer, key=lambda piece: (len(piece), piece))
    scores = np.array([data.draw(st.floats(-8, -0.1)) for _ in pieces])
    counts = np.array([data.draw(st.integers(1, 9)) for _ in word_list], dtype=float)
    lattice = Lattice.from_words(word_list, pieces)
    expected, best = reference_counts(word_list, pieces, scores, counts)
    np.testing.assert_allclose(lattice.expected_counts(scores, counts), expected, atol=1e-9)
    np.testing.assert_allclose(lattice.best_log_probabilities(scores), best, atol=1e-9)

    alive = np.array([len(piece) == 1 or data.draw(st.booleans()) for piece in pieces])
    alive_pieces = [piece for piece, is_alive in zip(pieces, alive, strict=True) if is_alive]
    expected, _ = reference_counts(word_list, alive_pieces, scores[alive], counts)
    actual = lattice.without_pruned(alive).expected_counts(np.where(alive, scores, -np.inf), counts)
    np.testing.assert_allclose(actual[alive], expected, atol=1e-9)


def test_pieces_are_segmented_without_themselves():
    pieces = ["a", "b", "ab", "abb"]
    scores = np.log([0.1, 0.2, 0.3, 0.4])
    best = Lattice.from_words(pieces, pieces, allow_whole_words=False).best_log_probabilities(
        scores
    )
    np.testing.assert_allclose(best, np.log([0.1, 0.2, 0.02, 0.06]))


def test_planted_pieces_are_learned():
    """Learn from words of four stems and three endings, each once."""
    stems, ends = ["wald", "berg", "haus", "stein"], ["lich", "ung", "bar"]
    counts = {f"▁{stem}{end}": 1 for stem in stems for end in ends}
    letters = {letter for word in counts for letter in word}
    scores = dict(train_unigram(counts, len(letters) + 7))
    assert {f"▁{stem}" for stem in stems} | set(ends) <= set(scores)


def test_probabilities_sum_to_one_and_letters_stay():
    counts = {"abcab": 3, "abc": 9, "xyz": 1}
    scores = dict(train_unigram(counts, 9))
    assert sum(math.exp(score) for score in scores.values()) == pytest.approx(1, abs=1e-3)
    assert set("abcxyz") <= set(scores)
    assert len(scores) == 9


def test_rare_words_are_dropped_if_there_are_too_many(monkeypatch):
    monkeypatch.setattr(unigram, "MAX_CHARACTERS", 6)
    assert set(
        "".join(piece for piece, _ in train_unigram({"aab": 9, "bba": 8, "cd": 1}, 20))
    ) == set("ab")
