"""Tests of Kendall's tau and of the overlap of top items."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics.rank_correlation import kendall_tau, top_overlap


@pytest.mark.parametrize(
    ("first", "second", "tau"),
    [
        ([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], 1.0),
        ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], -1.0),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0], 4 / 6),  # 5 pairs agree, 1 does not
        ([1.0, 1.0, 2.0], [1.0, 2.0, 3.0], 2 / math.sqrt(2 * 3)),  # tau-b: a tie in the first
    ],
)
def test_known_taus(first, second, tau):
    assert kendall_tau(first, second) == pytest.approx(tau)


def test_equal_numbers_have_no_tau():
    assert math.isnan(kendall_tau([1.0, 1.0], [1.0, 2.0]))
    assert math.isnan(top_overlap([], [], 3))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_tau_is_symmetric_and_antisymmetric(pairs):
    first, second = ([float(x) for x in side] for side in zip(*pairs, strict=True))
    tau = kendall_tau(first, second)
    assert math.isnan(tau) or -1 - 1e-9 <= tau <= 1 + 1e-9
    negated = kendall_tau([-x for x in first], second)
    assert math.isnan(tau) or negated == pytest.approx(-tau)
    assert kendall_tau(second, first) == pytest.approx(tau, nan_ok=True)


def test_top_overlap():
    assert top_overlap([9.0, 8.0, 1.0, 0.0], [9.0, 0.0, 8.0, 1.0], 2) == 0.5
    assert top_overlap([1.0, 2.0], [2.0, 1.0], 5) == 1.0
