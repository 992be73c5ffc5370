"""States, distances and contacts: numbers that can be checked by hand."""

import itertools
import math

import numpy as np
import pytest

from regard.metrics.fold import (
    majority_accuracy,
    residue_accuracy,
    segment_overlap,
    state_segments,
    top_precision,
    triangle_bounds,
)


def test_residues_count_the_same_in_every_protein():
    assert residue_accuracy(["HHC", "E"], ["HEC", "C"]) == 2 / 4
    assert residue_accuracy(["HHCE"], ["H?C?"]) == 1.0
    assert majority_accuracy(["HHC?", "E"]) == 2 / 4
    with pytest.raises(ValueError, match="true states are missing"):
        residue_accuracy(["H"], ["?"])


def test_stretches_end_where_states_change():
    assert state_segments("HHC?H") == [("H", 0, 2), ("C", 2, 3), ("H", 4, 5)]
    assert state_segments("") == []


def test_overlap_forgives_ends_and_punishes_breaks():
    """Zemla et al. 1999: an end that is a little off counts as right, a helix in two does not."""
    whole = "CCHHHHHHHHCC"
    assert segment_overlap([whole], [whole]) == 1.0
    # H of 8, guessed with 6 of them: 6 shared, 8 covered, allowance min(2, 6, 4, 3) = 2: 8 of 8.
    # C at the left: 2, guessed 3: 2 shared, 3 covered, allowance min(1, 2, 1, 1) = 1: 2 of 2.
    assert segment_overlap(["CCCHHHHHHCCC"], [whole]) == pytest.approx(1.0)
    # H meets two stretches of 3, so that it counts twice: each (3 + min(5, 3, 4, 1)) / 8 * 8 = 4
    # of 8; both ends of C are met whole, and the C in the middle meets none: 4 + 4 + 2 + 2 of 20.
    assert segment_overlap(["CCHHHCCHHHCC"], [whole]) == pytest.approx(12 / 20)
    assert segment_overlap(["EEEE"], ["HHHH"]) == 0.0


def shortest(table, known, i, j):
    """The shortest way over known distances, by trying all."""
    others = [k for k in range(len(table)) if k not in (i, j)]
    best = math.inf
    for many in range(len(others) + 1):
        for way in itertools.permutations(others, many):
            stops = [i, *way, j]
            steps = list(itertools.pairwise(stops))
            if all(known[a][b] for a, b in steps):
                best = min(best, sum(table[a][b] for a, b in steps))
    return best


def test_bounds_are_those_of_all_ways():
    draw = np.random.default_rng(0)
    points = draw.random((5, 3))
    table = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    chosen = np.triu(draw.random((5, 5)) < 0.5, 1)
    known = chosen | chosen.T
    least, most = triangle_bounds(table, known)
    for i, j in itertools.permutations(range(5), 2):
        assert most[i, j] == pytest.approx(shortest(table, known, i, j))
        assert least[i, j] - 1e-12 <= table[i, j] <= most[i, j] + 1e-12
    assert np.allclose(least[known], table[known])


def test_bounds_of_a_triangle():
    table = np.array([[0.0, 5.0, 3.0], [5.0, 0.0, 9.0], [3.0, 9.0, 0.0]])
    known = np.array([[False, True, True], [True, False, False], [True, False, False]])
    least, most = triangle_bounds(table, known)
    assert (least[1, 2], most[1, 2]) == (2.0, 8.0)
    alone, far = triangle_bounds(table, np.zeros((3, 3), dtype=bool))
    assert alone[1, 2] == 0.0
    assert far[1, 2] == math.inf


def test_precision_is_of_the_likeliest():
    likely, contact = [0.1, 0.9, 0.5, 0.7], [True, True, False, False]
    assert top_precision(likely, contact, 1) == 1.0
    assert top_precision(likely, contact, 2) == 0.5
    assert top_precision(likely, contact, 99) == 0.5
    assert top_precision(likely, contact, 0) == 1.0
    with pytest.raises(ValueError, match="pairs are missing"):
        top_precision([], [], 3)
