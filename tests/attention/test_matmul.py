"""Products with shared slots, and hooks on weights without a read."""

import pytest
import torch

from regard.attention.core import Attention
from regard.attention.matmul import matmul_shared_heads
from regard.attention.observe import intervene, observe, scale
from regard.attention.scores import Dot


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 3, 4, 5), (2, 1, 5, 6)),  # heads share slots
        ((2, 3, 4, 5), (1, 1, 5, 6)),  # heads and rows share slots
        ((2, 3, 4, 5), (2, 3, 5, 6)),
        ((2, 1, 4, 5), (2, 1, 5, 6)),
        ((2, 2, 3, 4, 5), (2, 2, 1, 5, 6)),
        ((3, 4, 5), (1, 5, 6)),
        ((2, 3, 4, 5), (5, 6)),
    ],
)
def test_it_is_the_product(left, right):
    left_tensor, right_tensor = (
        torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in (left, right)
    )
    actual, expected = matmul_shared_heads(left_tensor, right_tensor), left_tensor @ right_tensor
    assert actual.shape == expected.shape
    torch.testing.assert_close(actual, expected)
    upstream = torch.randn_like(expected)
    for mine, theirs in zip(
        torch.autograd.grad(actual, (left_tensor, right_tensor), upstream),
        torch.autograd.grad(expected, (left_tensor, right_tensor), upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)


def test_shared_slots_are_not_repeated():
    """The largest allocation is the result, not the slots repeated for each head."""
    shared, weights = torch.randn(2, 1, 50, 40), torch.randn(2, 8, 1, 50)
    with torch.profiler.profile(profile_memory=True) as profile:
        matmul_shared_heads(weights, shared)
    largest = max(event.self_cpu_memory_usage for event in profile.key_averages())
    assert largest < shared.nbytes


def test_intercept_records_and_edits_weights():
    attention, weights = Attention(Dot()), torch.rand(2, 3, 4)
    with observe(attention) as recorded, intervene(attention, {"attention": scale(0.5)}):
        used = attention.intercept(weights)
    torch.testing.assert_close(used, weights / 2)
    assert torch.equal(recorded["attention"][0], used)
    assert torch.equal(attention.intercept(weights), weights)
