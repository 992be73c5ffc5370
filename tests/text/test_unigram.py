"""The unigram model against sums over all ways to cut a word."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text import unigram
from regard.text.unigram import Lattice, train_unigram

words = st.text("abc", min_size=1, max_size=7)


def cuts(word):
    """All ways to write the word as pieces."""
    for marks in product([False, True], repeat=len(word) - 1):
        places = [0, *(n for n, mark in enumerate(marks, 1) if mark), len(word)]
        yield [word[a:b] for a, b in pairwise(places)]


def by_hand(some, pieces, scores, counts):
    """Expected counts of pieces, and the best cut of each word, from the definitions."""
    expected, best = dict.fromkeys(pieces, 0.0), []
    table = dict(zip(pieces, scores, strict=True))
    for word, count in zip(some, counts, strict=True):
        known = [cut for cut in cuts(word) if all(piece in table for piece in cut)]
        shares = [math.exp(sum(table[piece] for piece in cut)) for cut in known]
        best.append(math.log(max(shares)))
        for cut, share in zip(known, shares, strict=True):
            for piece in cut:
                expected[piece] += count * share / sum(shares)
    return [expected[piece] for piece in pieces], best


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=5), st.sets(words, max_size=6), st.data())
def test_expectations(some, longer, data):
    pieces = sorted({"a", "b", "c"} | longer, key=lambda piece: (len(piece), piece))
    scores = np.array([data.draw(st.floats(-8, -0.1)) for _ in pieces])
    counts = np.array([data.draw(st.integers(1, 9)) for _ in some], dtype=float)
    lattice = Lattice.from_words(some, pieces)
    expected, best = by_hand(some, pieces, scores, counts)
    np.testing.assert_allclose(lattice.expected_counts(scores, counts), expected, atol=1e-9)
    np.testing.assert_allclose(lattice.best_log_probabilities(scores), best, atol=1e-9)

    alive = np.array([len(piece) == 1 or data.draw(st.booleans()) for piece in pieces])
    fewer = [piece for piece, here in zip(pieces, alive, strict=True) if here]
    expected, _ = by_hand(some, fewer, scores[alive], counts)
    got = lattice.without_pruned(alive).expected_counts(np.where(alive, scores, -np.inf), counts)
    np.testing.assert_allclose(got[alive], expected, atol=1e-9)


def test_a_piece_is_written_without_itself():
    pieces = ["a", "b", "ab", "abb"]
    scores = np.log([0.1, 0.2, 0.3, 0.4])
    best = Lattice.from_words(pieces, pieces, allow_whole_words=False).best_log_probabilities(
        scores
    )
    np.testing.assert_allclose(best, np.log([0.1, 0.2, 0.02, 0.06]))


def test_the_pieces_that_were_planted_are_found():
    """Words made of four stems and three endings, each seen once."""
    stems, ends = ["wald", "berg", "haus", "stein"], ["lich", "ung", "bar"]
    counts = {f"▁{stem}{end}": 1 for stem in stems for end in ends}
    letters = {letter for word in counts for letter in word}
    found = dict(train_unigram(counts, len(letters) + 7))
    assert {f"▁{stem}" for stem in stems} | set(ends) <= set(found)


def test_probabilities_sum_to_one_and_letters_stay():
    counts = {"abcab": 3, "abc": 9, "xyz": 1}
    found = dict(train_unigram(counts, 9))
    assert sum(math.exp(score) for score in found.values()) == pytest.approx(1, abs=1e-3)
    assert set("abcxyz") <= set(found)
    assert len(found) == 9


def test_more_words_than_fit(monkeypatch):
    """The rare ones are left out."""
    monkeypatch.setattr(unigram, "MAX_CHARACTERS", 6)
    assert set(
        "".join(piece for piece, _ in train_unigram({"aab": 9, "bba": 8, "cd": 1}, 20))
    ) == set("ab")
