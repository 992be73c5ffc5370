"""Steps that share a memory read what separate calls read, with the same gradients."""

import pytest
import torch
from torch import Tensor

from regard.attention import step_energy as energies
from regard.attention.build import build_attention
from regard.attention.core import Attention
from regard.attention.observe import intervene, observe, zero
from regard.attention.step_energy import can_exponentiate, energy_of_step, exponential, step_energy
from regard.attention.step_reader import prepare_search, step_reader

SCORES = ("additive", "dot", "general", "location")


def double(*shape: int, scale: float = 1.0) -> Tensor:
    return (scale * torch.randn(shape, dtype=torch.float64)).requires_grad_()


def build(score: str, normalize: str = "softmax", dim: int = 4) -> Attention:
    return build_attention(score, dim, dim, normalize=normalize, hidden_dim=5, slots=9).double()


def read_all(attention: Attention, states: Tensor, queries: Tensor, in_steps: bool) -> Tensor:
    """Return the sum of contexts; each query depends on the last context."""
    valid = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    memory = attention.remember(states, valid)
    context, total = queries[0], 0.0
    read = step_reader(attention, memory) if in_steps else None
    for query in queries:
        query = query + context
        context = attention(query[:, None], memory)[:, 0] if read is None else read(query)
        total = total + context
    assert isinstance(total, Tensor)
    return total


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normalize", ["softmax", "sparsemax"])
@pytest.mark.parametrize("block", [1, 2**20])
def test_steps_equal_calls(score: str, normalize: str, block: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(energies, "MAX_BLOCK_ELEMENTS", block)
    attention, states, queries = build(score, normalize), double(2, 6, 4), double(3, 2, 4)
    expected, actual = (read_all(attention, states, queries, flag) for flag in (False, True))
    torch.testing.assert_close(actual, expected)
    inputs = [states, queries, *attention.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad(actual.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
    )


def test_gradients_of_gradients():
    attention, states, queries = build("additive", dim=2), double(2, 6, 2), double(2, 2, 2)
    arguments = (states, queries)
    assert torch.autograd.gradgradcheck(
        lambda s, q: read_all(attention, s, q, in_steps=True), arguments
    )


def test_observation_and_edits_act_on_steps():
    attention, states, queries = build("additive"), double(2, 6, 4), double(3, 2, 4)
    with observe(attention) as weights:
        observed = read_all(attention, states, queries, in_steps=True)
    assert len(weights["attention"]) == 3
    torch.testing.assert_close(observed, read_all(attention, states, queries, in_steps=True))
    with intervene(attention, {"attention": zero()}):
        assert not read_all(attention, states, queries, in_steps=True).any()


def test_energy_saturates_where_tanh_does():
    v, keys = double(4), double(2, 3, 4, scale=energies.MAX_KEY / 6)
    query = torch.tensor([[1000.0, -1000.0, 45.0, 0.0], [-41.0, 39.0, 0.1, 1e-9]]).double()
    assert can_exponentiate(keys)
    expected = (query[:, None] + keys).tanh() @ v
    torch.testing.assert_close(step_energy(keys, v)(query), expected)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        exp_keys = exponential(keys.detach().to(dtype), energies.MAX_KEY)
        actual = energy_of_step(query.to(dtype), exp_keys, v.detach().to(dtype))
        torch.testing.assert_close(actual.double(), expected, rtol=0, atol=tolerance)


def test_keys_too_large_to_exponentiate():
    attention, queries = build("additive"), double(3, 2, 4)
    states = double(2, 6, 4, scale=1000.0)
    assert not can_exponentiate(attention.remember(states).keys)
    actual, expected = (read_all(attention, states, queries, flag) for flag in (True, False))
    torch.testing.assert_close(actual, expected)


@torch.no_grad()
def test_search_reads_what_the_attention_reads():
    attention = build("additive").eval()
    valid = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    memory = attention.remember(torch.randn(2, 6, 4).double(), valid)
    rows, query = torch.tensor([1, 0, 0]), torch.randn(3, 4).double()
    search_memory = prepare_search(attention, memory).select(rows)
    assert search_memory.exp_keys is not None
    expected = attention(query[:, None], memory.select(rows))[:, 0]
    torch.testing.assert_close(search_memory.read(attention, query), expected)
    with observe(attention) as weights:
        torch.testing.assert_close(search_memory.read(attention, query), expected)
    assert len(weights["attention"]) == 1
