"""Penalties by hand."""

import math

import pytest
import torch

from regard.decoding.penalties import coverage_penalty, length_penalty, rerank
from regard.decoding.stepper import Hypothesis


def test_length_penalty():
    assert length_penalty(1, 0.7) == 1.0
    assert length_penalty(7, 1.0) == 2.0
    assert length_penalty(7, 2.0) == 4.0
    assert length_penalty(19, 0.5) == 2.0
    assert length_penalty(19, 0.0) == 1.0
    assert length_penalty(4, 0.5, "length") == 2.0
    assert length_penalty(20, 1.0, "length") == 20.0
    assert length_penalty(20, 0.0, "length") == 1.0


def test_coverage_penalty():
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]])  # sums 1.25, 0.5, 0.25
    assert coverage_penalty(weights, 1.0) == pytest.approx(math.log(0.5) + math.log(0.25))
    assert coverage_penalty(weights, 0.2) == pytest.approx(0.2 * math.log(0.125))
    assert coverage_penalty(torch.eye(3), 1.0) == 0.0


def test_a_source_word_never_looked_at_costs_much_but_not_all():
    assert coverage_penalty(torch.tensor([[1.0, 0.0]]), 1.0) == pytest.approx(math.log(1e-9))


def test_rerank():
    """The likelier output left out a word, and loses."""
    short, whole = Hypothesis([5], -1.0, -1.0), Hypothesis([5, 6], -1.2, -1.2)
    left_out = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    looked = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    [[first, second]] = rerank([[short, whole]], [[left_out, looked]], alpha=1.0, beta=0.5)
    assert first == Hypothesis([5, 6], -1.2 / (8 / 6), -1.2)
    assert second.ids == [5]
    assert second.score == pytest.approx(-1.0 / (7 / 6) + 0.5 * math.log(0.2))
    [[first, _]] = rerank([[short, whole]], [[left_out, looked]], alpha=0.0, beta=0.0)
    assert first.ids == [5]
    [[first, second]] = rerank(
        [[short, whole]], [[left_out, looked]], alpha=1.0, beta=0.0, normalization="length"
    )
    assert (first.ids, first.score) == ([5, 6], pytest.approx(-0.4))
    assert second.score == -0.5


def test_wrong_arguments():
    with pytest.raises(ValueError, match="one attention map for each output"):
        rerank([[Hypothesis([], 0.0, 0.0)]], [[]])
    with pytest.raises(ValueError, match="beta must be 0 or more"):
        rerank([], [], beta=-1.0)
