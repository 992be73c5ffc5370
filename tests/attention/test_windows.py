"""Luong's local-p against a loop written from eq. 9-10."""

import math

import torch

from regard.attention.core import Attention
from regard.attention.normalizers import softmax
from regard.attention.scores import Additive, Dot, General
from regard.attention.windows import PredictiveWindow

F64 = torch.float64


@torch.no_grad()
def test_local_p_is_its_equation():
    """S = real source length, sigma = D/2, Gaussian after the softmax, not normalized again."""
    radius, lengths = 2.0, [7, 4, 1]
    attention = Attention(Dot(), window=PredictiveWindow(5, radius, hidden_dim=3)).to(F64)
    into, _, out, _ = attention.window.center
    query, states = torch.randn(3, 2, 5, dtype=F64) * 3, torch.randn(3, 7, 5, dtype=F64)
    memory = attention.remember(states, torch.arange(7) < torch.tensor(lengths)[:, None])
    weights = attention.weigh(query, memory)
    for b, length in enumerate(lengths):
        for t in range(2):
            hidden = [math.tanh(float(row @ query[b, t])) for row in into.weight]
            raw = sum(v * x for v, x in zip(out.weight[0].tolist(), hidden, strict=True))
            center = length / (1 + math.exp(-raw))
            window = [s for s in range(length) if abs(s - center) <= radius]
            energy = {s: float(query[b, t] @ states[b, s]) for s in window}
            total = sum(math.exp(e) for e in energy.values())
            want = torch.zeros(7, dtype=F64)
            for s in window:
                gauss = math.exp(-((s - center) ** 2) / (2 * (radius / 2) ** 2))
                want[s] = math.exp(energy[s]) / total * gauss
            torch.testing.assert_close(weights[b, t], want, rtol=1e-10, atol=1e-14)
            assert 0 < weights[b, t].sum() <= 1


def test_a_wide_flat_window_is_global_attention():
    query, states = torch.randn(2, 3, 5, dtype=F64), torch.randn(2, 6, 4, dtype=F64)
    for radius in (1e2, 1e4, 1e6):
        attention = Attention(General(5, 4), window=PredictiveWindow(5, radius)).to(F64)
        memory = attention.remember(states)
        globally = softmax(attention.score(query, memory.keys))
        gap = (attention.weigh(query, memory) - globally).abs().max()
        assert gap <= 2 * (6 / radius) ** 2


def test_the_position_learns_through_the_gaussian():
    attention = Attention(Additive(5, 4, 3), window=PredictiveWindow(5, 2)).to(F64)
    states = torch.randn(2, 6, 4, dtype=F64)

    def context(query: torch.Tensor) -> torch.Tensor:
        return attention(query, attention.remember(states))

    assert torch.autograd.gradcheck(context, torch.randn(2, 3, 5, dtype=F64, requires_grad=True))
    context(torch.randn(2, 3, 5, dtype=F64)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in attention.window.parameters())
