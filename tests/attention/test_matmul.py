"""Products with shared slots, and weights that are seen where nothing is read."""

import pytest
import torch

from regard.attention.core import Attention
from regard.attention.matmul import matmul_shared_heads
from regard.attention.observe import intervene, observe, scale
from regard.attention.scores import Dot


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 3, 4, 5), (2, 1, 5, 6)),  # heads that share
        ((2, 3, 4, 5), (1, 1, 5, 6)),  # rows too
        ((2, 3, 4, 5), (2, 3, 5, 6)),
        ((2, 1, 4, 5), (2, 1, 5, 6)),
        ((2, 2, 3, 4, 5), (2, 2, 1, 5, 6)),
        ((3, 4, 5), (1, 5, 6)),
        ((2, 3, 4, 5), (5, 6)),
    ],
)
def test_it_is_the_product(left, right):
    one, other = (
        torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in (left, right)
    )
    found, plain = matmul_shared_heads(one, other), one @ other
    assert found.shape == plain.shape
    torch.testing.assert_close(found, plain)
    above = torch.randn_like(plain)
    for mine, theirs in zip(
        torch.autograd.grad(found, (one, other), above),
        torch.autograd.grad(plain, (one, other), above),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)


def test_what_heads_share_is_not_repeated():
    """The largest tensor that the product makes is its result, not the slots for each head."""
    shared, asked = torch.randn(2, 1, 50, 40), torch.randn(2, 8, 1, 50)
    with torch.profiler.profile(profile_memory=True) as seen:
        matmul_shared_heads(asked, shared)
    most = max(event.self_cpu_memory_usage for event in seen.key_averages())
    assert most < shared.nbytes


def test_weights_are_seen_and_edited_without_a_read():
    attention, weights = Attention(Dot()), torch.rand(2, 3, 4)
    with observe(attention) as seen, intervene(attention, {"attention": scale(0.5)}):
        used = attention.intercept(weights)
    torch.testing.assert_close(used, weights / 2)
    assert torch.equal(seen["attention"][0], used)
    assert torch.equal(attention.intercept(weights), weights)
