"""Tests of the metrics of states, distances and contacts, against values by hand."""

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


def test_residue_accuracy():
    assert residue_accuracy(["HHC", "E"], ["HEC", "C"]) == 2 / 4
    assert residue_accuracy(["HHCE"], ["H?C?"]) == 1.0
    assert majority_accuracy(["HHC?", "E"]) == 2 / 4
    with pytest.raises(ValueError, match="no known target states"):
        residue_accuracy(["H"], ["?"])


def test_state_segments():
    assert state_segments("HHC?H") == [("H", 0, 2), ("C", 2, 3), ("H", 4, 5)]
    assert state_segments("") == []


def test_segment_overlap():
    """SOV tolerates shifted ends and penalizes broken segments (Zemla et al. 1999)."""
    target = "CCHHHHHHHHCC"
    assert segment_overlap([target], [target]) == 1.0
    # H has 8, predicted 6: intersection 6, union 8, allowance min(2, 6, 4, 3) = 2: 8 of 8.
    # Left C has 2, predicted 3: intersection 2, union 3, allowance min(1, 2, 1, 1) = 1: 2 of 2.
    assert segment_overlap(["CCCHHHHHHCCC"], [target]) == pytest.approx(1.0)
    # H overlaps two segments of 3 and counts twice: each (3 + min(5, 3, 4, 1)) / 8 * 8 = 4 of 8.
    # Both ends of C match, and the C in the middle overlaps none: 4 + 4 + 2 + 2 of 20.
    assert segment_overlap(["CCHHHCCHHHCC"], [target]) == pytest.approx(12 / 20)
    assert segment_overlap(["EEEE"], ["HHHH"]) == 0.0


def shortest_path(table, known, i, j):
    """Return the length of the shortest path over known distances, by enumeration."""
    others = [k for k in range(len(table)) if k not in (i, j)]
    best = math.inf
    for count in range(len(others) + 1):
        for route in itertools.permutations(others, count):
            stops = [i, *route, j]
            steps = list(itertools.pairwise(stops))
            if all(known[a][b] for a, b in steps):
                best = min(best, sum(table[a][b] for a, b in steps))
    return best


def test_bounds_match_enumeration():
    rng = np.random.default_rng(0)
    points = rng.random((5, 3))
    table = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    chosen = np.triu(rng.random((5, 5)) < 0.5, 1)
    known = chosen | chosen.T
    lower, upper = triangle_bounds(table, known)
    for i, j in itertools.permutations(range(5), 2):
        assert upper[i, j] == pytest.approx(shortest_path(table, known, i, j))
        assert lower[i, j] - 1e-12 <= table[i, j] <= upper[i, j] + 1e-12
    assert np.allclose(lower[known], table[known])


def test_bounds_of_a_triangle():
    table = np.array([[0.0, 5.0, 3.0], [5.0, 0.0, 9.0], [3.0, 9.0, 0.0]])
    known = np.array([[False, True, True], [True, False, False], [True, False, False]])
    lower, upper = triangle_bounds(table, known)
    assert (lower[1, 2], upper[1, 2]) == (2.0, 8.0)
    unbounded_lower, unbounded_upper = triangle_bounds(table, np.zeros((3, 3), dtype=bool))
    assert unbounded_lower[1, 2] == 0.0
    assert unbounded_upper[1, 2] == math.inf


def test_top_precision():
    scores, is_contact = [0.1, 0.9, 0.5, 0.7], [True, True, False, False]
    assert top_precision(scores, is_contact, 1) == 1.0
    assert top_precision(scores, is_contact, 2) == 0.5
    assert top_precision(scores, is_contact, 99) == 0.5
    assert top_precision(scores, is_contact, 0) == 1.0
    with pytest.raises(ValueError, match="no pairs; give at least one"):
        top_precision([], [], 3)
