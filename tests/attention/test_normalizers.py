"""Normalizers against their definitions: a loop, a bisection, a brute-force search."""

import math
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention.normalizers import StraightThrough, entmax15, sample_slot, softmax, sparsemax

rows = st.lists(st.floats(-30, 30), min_size=1, max_size=9)


def row(energies: list[float]) -> Tensor:
    return torch.tensor([[energies]], dtype=torch.float64)


@settings(max_examples=40)
@given(rows)
def test_softmax_is_its_equation(energies: list[float]):
    top = max(energies)
    total = sum(math.exp(e - top) for e in energies)
    want = [math.exp(e - top) / total for e in energies]
    torch.testing.assert_close(softmax(row(energies)), row(want), rtol=1e-10, atol=1e-300)


@settings(max_examples=40)
@given(rows)
def test_sparsemax_is_the_nearest_point_of_the_simplex(energies: list[float]):
    """Search all supports for the nearest feasible projection."""
    best, distance = None, math.inf
    for size in range(1, len(energies) + 1):
        for support in combinations(range(len(energies)), size):
            shift = (sum(energies[i] for i in support) - 1) / size
            point = [energies[i] - shift if i in support else 0.0 for i in range(len(energies))]
            away = sum((p - e) ** 2 for p, e in zip(point, energies, strict=True))
            if min(point) >= -1e-12 and away < distance:
                best, distance = point, away
    assert best is not None
    torch.testing.assert_close(sparsemax(row(energies)), row(best), rtol=1e-10, atol=1e-10)


@settings(max_examples=40)
@given(rows)
def test_entmax15_is_its_equation(energies: list[float]):
    """w = max(0, e/2 - t)^2, with t by bisection."""
    low, high = max(energies) / 2 - 1, max(energies) / 2
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(0.0, e / 2 - middle) ** 2 for e in energies) > 1:
            low = middle
        else:
            high = middle
    want = [max(0.0, e / 2 - high) ** 2 for e in energies]
    torch.testing.assert_close(entmax15(row(energies)), row(want), rtol=1e-9, atol=1e-9)


def test_hand_checked_numbers():
    energy = torch.tensor([[[1.0, 0.5, -1.0]]], dtype=torch.float64)
    torch.testing.assert_close(sparsemax(energy), row([0.75, 0.25, 0.0]))
    even = torch.tensor([[[0.0, 0.0, -9.0]]], dtype=torch.float64)
    torch.testing.assert_close(entmax15(even), row([0.5, 0.5, 0.0]))
    torch.testing.assert_close(softmax(even[..., :2]), row([0.5, 0.5]))


@pytest.mark.parametrize("normalize", [softmax, sparsemax, entmax15])
def test_gradients(normalize):
    energy = torch.randn(2, 3, 5, dtype=torch.float64)
    energy[0, 0, 2] = energy[1, 2, :4] = -torch.inf
    finite = energy != -torch.inf

    def normalize_finite(values: Tensor) -> Tensor:
        return normalize(torch.full_like(energy, -torch.inf).masked_scatter(finite, values))

    values = energy[finite].requires_grad_()
    assert torch.autograd.gradcheck(normalize_finite, values)
    assert torch.autograd.gradgradcheck(normalize_finite, values)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("normalize", [softmax, sparsemax, entmax15, StraightThrough()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_an_empty_row_reads_nothing_and_has_finite_gradients(normalize, dtype: torch.dtype):
    energy = torch.full((1, 2, 3), -torch.inf, dtype=dtype)
    energy[0, 1] = torch.tensor([1.0, -torch.inf, 2.0])
    energy.requires_grad_()
    with torch.autograd.detect_anomaly(check_nan=True):
        weights = normalize(energy)
        (weights * torch.arange(3)).sum().backward()
    assert (weights[0, 0] == 0).all()
    assert weights[0, 1, 1] == 0
    assert weights[0, 1].sum().item() == pytest.approx(1, abs=1e-2)
    assert energy.grad is not None
    assert energy.grad.isfinite().all()


@pytest.mark.parametrize("normalize", [softmax, sparsemax, entmax15])
def test_huge_energies_stay_finite(normalize):
    energy = torch.tensor([[[1e30, -1e30, 3e38], [-3e38, -3e38, -3e38]]], requires_grad=True)
    weights = normalize(energy)
    weights.square().sum().backward()
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2))
    assert energy.grad is not None
    assert energy.grad.isfinite().all()


def test_draws_follow_the_softmax():
    energy = torch.tensor([0.0, 1.0, 2.0, -torch.inf]).expand(1, 40_000, 4)
    share = sample_slot(energy).mean(1).squeeze(0)
    want = softmax(energy)[0, 0]
    error = 4 * (want * (1 - want) / 40_000).sqrt()
    assert ((share - want).abs() <= error).all()


def test_straight_through_reads_one_slot_and_learns_as_softmax():
    hard = StraightThrough()
    energy = torch.randn(4, 5, 6, dtype=torch.float64, requires_grad=True)
    values = torch.randn(6, dtype=torch.float64)
    weights = hard(energy)
    assert ((weights == 0) | (weights == 1)).all()
    assert (weights.sum(-1) == 1).all()
    (weights @ values).sum().backward()
    have = energy.grad
    energy.grad = None
    (softmax(energy) @ values).sum().backward()
    torch.testing.assert_close(have, energy.grad)
    hard.eval()
    assert torch.equal(hard(energy).argmax(-1), energy.argmax(-1))
