"""Tests of the metrics of bit sequences."""

import math

import pytest

from regard.metrics.bits import BITS_SIGNATURE, bits_per_sequence, wrong_bits


def test_a_random_bit_costs_one_bit():
    """Two sequences of three uniformly random bits cost three bits each."""
    assert bits_per_sequence(6 * math.log(2), 2) == pytest.approx(3.0)
    assert "log:2" in BITS_SIGNATURE


def test_wrong_bits():
    assert wrong_bits([0b101, 0b11], [0b100, 0b11]) == 1
    assert wrong_bits([0b101], [0b010]) == 3
    assert wrong_bits([], []) == 0


def test_bad_arguments():
    with pytest.raises(ValueError, match="sequences must be at least 1, not 0"):
        bits_per_sequence(1.0, 0)
    with pytest.raises(ValueError, match="predicted has 1 vectors, but target has 2"):
        wrong_bits([1], [1, 2])
