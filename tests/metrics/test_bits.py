"""Bits of a sequence, by hand."""

import math

import pytest

from regard.metrics.bits import BITS_SIGNATURE, bits_per_sequence, wrong_bits


def test_a_coin_costs_one_bit():
    """Two sequences of three bits that nothing is known of."""
    assert bits_per_sequence(6 * math.log(2), 2) == pytest.approx(3.0)
    assert "log:2" in BITS_SIGNATURE


def test_bits_that_differ():
    assert wrong_bits([0b101, 0b11], [0b100, 0b11]) == 1
    assert wrong_bits([0b101], [0b010]) == 3
    assert wrong_bits([], []) == 0


def test_what_cannot_be():
    with pytest.raises(ValueError, match="sequences must be 1 or more, not 0"):
        bits_per_sequence(1.0, 0)
    with pytest.raises(ValueError, match="said has 1 vectors, but wanted has 2"):
        wrong_bits([1], [1, 2])
