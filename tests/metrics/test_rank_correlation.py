"""Orders beside one another."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics.rank_correlation import kendall_tau, top_overlap


@pytest.mark.parametrize(
    ("one", "other", "tau"),
    [
        ([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], 1.0),
        ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], -1.0),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0], 4 / 6),  # 5 pairs agree, 1 does not
        ([1.0, 1.0, 2.0], [1.0, 2.0, 3.0], 2 / math.sqrt(2 * 3)),  # tau-b: a tie in the one
    ],
)
def test_by_hand(one, other, tau):
    assert kendall_tau(one, other) == pytest.approx(tau)


def test_all_alike_has_no_order():
    assert math.isnan(kendall_tau([1.0, 1.0], [1.0, 2.0]))
    assert math.isnan(top_overlap([], [], 3))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_as_an_independent_count(pairs):
    one, other = ([float(x) for x in side] for side in zip(*pairs, strict=True))
    tau = kendall_tau(one, other)
    assert math.isnan(tau) or -1 - 1e-9 <= tau <= 1 + 1e-9
    turned = kendall_tau([-x for x in one], other)
    assert math.isnan(tau) or turned == pytest.approx(-tau)
    assert kendall_tau(other, one) == pytest.approx(tau, nan_ok=True)


def test_the_greatest_in_common():
    assert top_overlap([9.0, 8.0, 1.0, 0.0], [9.0, 0.0, 8.0, 1.0], 2) == 0.5
    assert top_overlap([1.0, 2.0], [2.0, 1.0], 5) == 1.0
