"""Every score against a loop written from its equation, in float64, with widths that differ."""

import math

import pytest
import torch
from torch import Tensor, nn

from regard.attention.scores import (
    Additive,
    Cosine,
    Dot,
    General,
    LocationScore,
    Salience,
    ScaledDot,
    Score,
)

B, Q, K = 2, 3, 4


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def apply(weight: Tensor, x: list[float], bias: Tensor | None = None) -> list[float]:
    """Multiply row by row; nn.Linear stores one row for each output."""
    shift = [0.0] * len(weight) if bias is None else bias.tolist()
    return [dot(row, x) + b for row, b in zip(weight.tolist(), shift, strict=True)]


def loop_dot(_: Score, q: list[float], h: list[float], slot: int) -> float:
    return dot(q, h)


def loop_scaled(_: Score, q: list[float], h: list[float], slot: int) -> float:
    return dot(q, h) / math.sqrt(len(h))


def loop_general(score: General, q: list[float], h: list[float], slot: int) -> float:
    return dot(q, apply(score.of_key.weight, h))


def loop_additive(score: Additive, q: list[float], h: list[float], slot: int) -> float:
    pairs = zip(
        apply(score.of_query.weight, q, score.of_query.bias),
        apply(score.of_key.weight, h),
        strict=True,
    )
    return dot(score.energy.tolist(), [math.tanh(x + y) for x, y in pairs])


def loop_projected_query(score: Additive, q: list[float], h: list[float], slot: int) -> float:
    """The query is already W q."""
    pairs = zip(q, apply(score.of_key.weight, h), strict=True)
    return dot(score.energy.tolist(), [math.tanh(x + y) for x, y in pairs])


def loop_location(score: LocationScore, q: list[float], h: list[float], slot: int) -> float:
    return apply(score.of_query.weight, q)[slot]


def loop_cosine(_: Score, q: list[float], h: list[float], slot: int) -> float:
    *direction, raw = q
    strength = math.log(1 + math.exp(raw))
    length = math.sqrt(dot(direction, direction)) * math.sqrt(dot(h, h))
    return strength * dot(direction, h) / length


def loop_salience(score: Salience, q: list[float], h: list[float], slot: int) -> float:
    hidden = apply(score.of_key.weight, h, score.of_key.bias)
    return dot(q, [math.tanh(x) for x in hidden])


CASES = {  # score, query width, memory width, loop
    "dot": (lambda: Dot(), 5, 5, loop_dot),
    "scaled_dot": (lambda: ScaledDot(), 5, 5, loop_scaled),
    "general": (lambda: General(5, 6), 5, 6, loop_general),
    "additive": (lambda: Additive(5, 6, 7), 5, 6, loop_additive),
    "additive, W q given": (lambda: Additive(None, 6, 7), 7, 6, loop_projected_query),
    "additive with bias": (lambda: Additive(5, 6, 7, bias=True), 5, 6, loop_additive),
    "location": (lambda: LocationScore(5, 9), 5, 6, loop_location),
    "cosine": (lambda: Cosine(), 7, 6, loop_cosine),
    "salience": (lambda: Salience(6, 7), 7, 6, loop_salience),
}


@pytest.mark.parametrize("name", CASES)
def test_score_is_its_equation(name: str):
    build, query_dim, memory_dim, loop = CASES[name]
    score = build().double()
    query = torch.randn(B, Q, query_dim, dtype=torch.float64)
    states = torch.randn(B, K, memory_dim, dtype=torch.float64)
    want = [
        [[loop(score, q, h, j) for j, h in enumerate(row_h)] for q in row_q]
        for row_q, row_h in zip(query.tolist(), states.tolist(), strict=True)
    ]
    have = score(query, score.prepare(states))
    exact = torch.tensor(want, dtype=torch.float64)
    torch.testing.assert_close(have, exact, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_score_has_the_gradient_of_its_equation(name: str):
    build, query_dim, memory_dim, _ = CASES[name]
    score = build().double()
    query = torch.randn(1, 2, query_dim, dtype=torch.float64, requires_grad=True)
    states = torch.randn(1, 3, memory_dim, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in score.named_parameters()]

    def energy(query: Tensor, states: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(
            PrepareAndScore(score), {f"score.{n}": p for n, p in named.items()}, (query, states)
        )

    assert torch.autograd.gradcheck(energy, (query, states, *score.parameters()))


class PrepareAndScore(nn.Module):
    def __init__(self, score: Score):
        super().__init__()
        self.score = score

    def forward(self, query: Tensor, states: Tensor) -> Tensor:
        return self.score(query, self.score.prepare(states))


@pytest.mark.parametrize(
    "build", [lambda h: General(5, 6, heads=h), lambda h: Additive(5, 6, 7, bias=True, heads=h)]
)
def test_heads_have_separate_parameters(build):
    score = build(3).double()
    query = torch.randn(B, 3, Q, 5, dtype=torch.float64)
    states = torch.randn(B, 3, K, 6, dtype=torch.float64)
    together = score(query, score.prepare(states))
    for head in range(3):
        single = build(None).double()
        with torch.no_grad():
            for name, parameter in single.named_parameters():
                mine = score.get_parameter(name)[head]
                parameter.copy_(
                    mine.mT if name.endswith("weight") else mine.reshape(parameter.shape)
                )
        alone = single(query[:, head], single.prepare(states[:, head]))
        torch.testing.assert_close(together[:, head], alone, rtol=1e-10, atol=1e-12)


def test_additive_is_luongs_concat():
    score = Additive(5, 6, 7).double()
    query, states = torch.randn(5).double(), torch.randn(6).double()
    stacked = torch.cat([score.of_query.weight, score.of_key.weight], 1)
    concat = score.energy @ (stacked @ torch.cat([query, states])).tanh()
    energy = score(query.view(1, 1, 5), score.prepare(states.view(1, 1, 6)))
    torch.testing.assert_close(energy.squeeze(), concat)


def test_cosine_of_a_zero_vector_is_zero():
    energy = Cosine()(torch.zeros(1, 1, 4), Cosine().prepare(torch.zeros(1, 2, 3)))
    assert (energy == 0).all()


def test_variance_of_dot_products():
    """Entries of mean 0 and variance 1: q . k has variance d, and q . k / sqrt(d) has 1."""
    d, n = 64, 1000
    query, keys = (
        torch.randn(1, n, d, dtype=torch.float64),
        torch.randn(1, n, d, dtype=torch.float64),
    )
    error = 4 * math.sqrt(2 / n) * 1.5  # the n^2 products share n queries and n keys
    assert Dot()(query, keys).var().item() == pytest.approx(d, rel=error)
    assert ScaledDot()(query, keys).var().item() == pytest.approx(1, rel=error)
