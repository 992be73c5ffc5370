"""What every attention obeys: each law is tried on each mechanism with random sizes and masks.

A mechanism is a score of the catalogue with a normalizer of the catalogue, or local-p over a score.
A score or normalizer that is added to the catalogue is tried here at once. `make test` tries each
law on each score and each normalizer; `make test-all` on every pair of them.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from regard.attention.catalogue import NORMALIZERS, SCORES, AttentionComponent
from regard.attention.core import Attention
from regard.attention.masks import Mask, causal, local, strictly_causal
from regard.attention.memory import Memory
from regard.attention.normalizers import softmax
from regard.attention.observe import observe
from regard.attention.reinforce import ReinforceSampler, sample_attention
from regard.attention.windows import PredictiveWindow

MASKS = {
    "none": None,
    "causal": causal,
    "before": strictly_causal,
    "local": local(1),
    "both": causal & local(2),
}
MOST_SLOTS = 9


@dataclass(frozen=True)
class Mechanism:
    score: str
    normalizer: str = "softmax"
    windowed: bool = False

    def __str__(self) -> str:
        return "+".join([self.score, self.normalizer] + ["local-p"] * self.windowed)


def implementation_of(piece: AttentionComponent) -> Any:
    module, _, name = piece.implementation.partition(".")
    return getattr(import_module(f"regard.attention.{module}"), name)


def make_score(name: str, query_dim: int, memory_dim: int) -> tuple[nn.Module, int]:
    """The score and how wide its query is."""
    kind = implementation_of(SCORES[name])
    if name in ("dot", "scaled_dot"):
        return kind(), memory_dim
    if name == "cosine":
        return kind(), memory_dim + 1
    if name == "salience":
        return kind(memory_dim, 4), 4
    if name == "location":
        return kind(query_dim, 2 * MOST_SLOTS), query_dim
    if name == "additive":
        return kind(query_dim, memory_dim, 4), query_dim
    return kind(query_dim, memory_dim), query_dim


MECHANISMS = [Mechanism(score, normalizer) for score in SCORES for normalizer in NORMALIZERS]
MECHANISMS += [Mechanism(score, windowed=True) for score in SCORES]


@dataclass(frozen=True)
class Case:
    """A mechanism at some size, with inputs made from a seed; sizes are small, some rows empty."""

    mechanism: Mechanism
    queries: int
    slots: int
    query_dim: int
    memory_dim: int
    value_dim: int
    lengths: tuple[int, ...]  # real slots of each row
    mask: str
    seed: int

    @cached_property
    def made(self) -> tuple[Attention, Tensor, Tensor, Tensor]:
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            score, wide = make_score(self.mechanism.score, self.query_dim, self.memory_dim)
            normalise = implementation_of(NORMALIZERS[self.mechanism.normalizer])
            if isinstance(normalise, type):
                normalise = normalise()
            window = PredictiveWindow(wide, 2) if self.mechanism.windowed else None
            attention = Attention(score, normalise, window).double().eval()
            rows = len(self.lengths)
            query = torch.randn(rows, self.queries, wide, dtype=torch.float64)
            states = torch.randn(rows, self.slots, self.memory_dim, dtype=torch.float64)
            values = torch.randn(rows, self.slots, self.value_dim, dtype=torch.float64)
            return attention, query, states, values

    @property
    def valid(self) -> Tensor:
        return torch.arange(self.slots) < torch.tensor(self.lengths)[:, None]

    @property
    def chosen_mask(self) -> Mask | None:
        return MASKS[self.mask]

    @property
    def memory(self) -> Memory:
        attention, _, states, values = self.made
        return attention.remember(states, self.valid, values)

    def allowed(self) -> Tensor:
        """Written again from the rule, apart from the code that is tested."""
        attention, query, _, _ = self.made
        full = self.valid[:, None].expand(-1, self.queries, -1).clone()
        for t in range(self.queries):
            for s in range(self.slots):
                full[:, t, s] &= {
                    "none": True,
                    "causal": s <= t,
                    "before": s < t,
                    "local": abs(s - t) <= 1,
                    "both": s <= t and t - s <= 2,
                }[self.mask]
        if attention.window is not None:
            center = attention.window.center(query) * torch.tensor(self.lengths)[:, None, None]
            full &= (torch.arange(self.slots) - center).abs() <= attention.window.radius
        return full


@st.composite
def cases(draw: Callable[..., Any], mechanism: Mechanism) -> Case:
    slots = draw(st.integers(1, MOST_SLOTS))
    return Case(
        mechanism,
        queries=draw(st.integers(1, 5)),
        slots=slots,
        query_dim=draw(st.integers(1, 4)),
        memory_dim=draw(st.integers(2, 4)),  # in one dimension cosines are all 1 or -1: ties
        value_dim=draw(st.integers(1, 4)),
        lengths=tuple(draw(st.lists(st.integers(0, slots), min_size=1, max_size=3))),
        mask=draw(st.sampled_from(list(MASKS))),
        seed=draw(st.integers(0, 2**31)),
    )


def close(have: Tensor, want: Tensor) -> None:
    torch.testing.assert_close(have, want, rtol=1e-9, atol=1e-11)


def weights_are_a_distribution_over_what_is_allowed(case: Case) -> None:
    """>= 0; exactly 0 where not allowed; sum to 1, to 0 when empty, to at most 1 in a window."""
    attention, query, _, _ = case.made
    is_drawn = isinstance(attention.normalize, nn.Module)
    for training in (False, True) if is_drawn else (False,):
        attention.train(training)
        if training and isinstance(attention.normalize, ReinforceSampler):
            with sample_attention(attention):
                weights = attention.weigh(query, case.memory, case.chosen_mask, start=0)
        else:
            weights = attention.weigh(query, case.memory, case.chosen_mask, start=0)
        attention.eval()
        allowed = case.allowed()
        total = weights.sum(-1)
        assert weights.shape == (len(case.lengths), case.queries, case.slots)
        assert (weights >= 0).all()
        assert (weights[~allowed] == 0).all()
        assert (total[~allowed.any(-1)] == 0).all()
        if case.mechanism.windowed:
            assert (total <= 1 + 1e-9).all()
            assert (total[allowed.any(-1)] > 0).all()
        else:
            close(total, allowed.any(-1).double())


def order_of_slots_is_irrelevant(case: Case) -> None:
    """Permuting slots permutes weights; for `location`, which sees only positions, they stay."""
    attention, query, states, values = case.made
    weights = attention.weigh(query, attention.remember(states, None, values))
    order = torch.randperm(case.slots)
    shuffled = attention.remember(states[:, order], None, values[:, order])
    moved = attention.weigh(query, shuffled)
    close(moved, weights if case.mechanism.score == "location" else weights[..., order])


def causal_means_the_future_changes_nothing(case: Case) -> None:
    """To the last bit: other states behind t, and nothing up to t notices."""
    attention, query, states, values = case.made
    t = case.seed % case.slots
    other, changed = states.clone(), values.clone()
    other[:, t + 1 :] += 1
    changed[:, t + 1 :] *= -3
    now = attention(query, attention.remember(states, None, values), causal, start=0)
    then = attention(query, attention.remember(other, None, changed), causal, start=0)
    assert torch.equal(now[:, : t + 1], then[:, : t + 1])


def forward_is_weigh_then_read(case: Case) -> None:
    """The fused path, where there is one, equals the explicit one, which is a plain product."""
    attention, query, _, values = case.made
    weights = attention.weigh(query, case.memory, case.chosen_mask, start=0)
    context = attention(query, case.memory, case.chosen_mask, start=0)
    close(context, attention.read(weights, case.memory))
    close(context, weights @ values)


def cached_is_full(case: Case) -> None:
    """A memory that grew slot by slot is the same memory; step by step is all at once."""
    attention, query, states, values = case.made
    with torch.no_grad():
        pieces = [
            attention.remember(states[:, s : s + 1], case.valid[:, s : s + 1], values[:, s : s + 1])
            for s in range(case.slots)
        ]
        grown = pieces[0]
        for piece in pieces[1:]:
            grown = grown.append(piece)
        full = attention(query, case.memory, case.chosen_mask, start=0)
        close(attention(query, grown, case.chosen_mask, start=0), full)
        for t in range(case.queries):
            step = attention(query[:, t : t + 1], grown, case.chosen_mask, start=t)
            close(step, full[:, t : t + 1])


def padding_is_irrelevant(case: Case) -> None:
    """However much of it, whatever is in it; and a row alone reads what it reads in a batch."""
    attention, query, states, values = case.made
    full = attention(query, case.memory, case.chosen_mask, start=0)
    more = 1 + case.seed % MOST_SLOTS
    wide = torch.cat([states, torch.full_like(states[:, :1], 7.0).expand(-1, more, -1)], 1)
    deep = torch.cat([values, torch.full_like(values[:, :1], 1e3).expand(-1, more, -1)], 1)
    valid = nn.functional.pad(case.valid, (0, more))
    padded = attention.remember(wide, valid, deep)
    close(attention(query, padded, case.chosen_mask, start=0), full)
    for row, length in enumerate(case.lengths):
        if length:
            alone = attention.remember(states[row, :length], None, values[row, :length])
            close(attention(query[row], alone, case.chosen_mask, start=0), full[row])


def looking_changes_nothing(case: Case) -> None:
    """Outputs are the same to the last bit, and what is seen is what was weighed."""
    attention, query, _, _ = case.made
    plain = attention(query, case.memory, case.chosen_mask, start=0)
    with observe(attention) as seen:
        looked = attention(query, case.memory, case.chosen_mask, start=0)
    assert torch.equal(plain, looked)
    (weights,) = seen["attention"]
    assert torch.equal(weights, attention.weigh(query, case.memory, case.chosen_mask, start=0))


def all_is_finite(case: Case) -> None:
    """Outputs and gradients, in three precisions, empty rows and large inputs included."""
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        attention = copy.deepcopy(case.made[0]).to(dtype)
        inputs = [t.to(dtype, copy=True) for t in case.made[1:]]
        inputs[0] *= 10
        for tensor in inputs:
            tensor.requires_grad_()
        query, states, values = inputs
        memory = attention.remember(states, case.valid, values)
        context = attention(query, memory, case.chosen_mask, start=0)
        assert context.dtype == dtype
        context.sum().backward()
        grads = [t.grad for t in (*inputs, *attention.parameters()) if t.grad is not None]
        assert values.grad is not None
        assert all(t.isfinite().all() for t in (context, *grads))


LAWS = [
    weights_are_a_distribution_over_what_is_allowed,
    order_of_slots_is_irrelevant,
    causal_means_the_future_changes_nothing,
    forward_is_weigh_then_read,
    cached_is_full,
    padding_is_irrelevant,
    looking_changes_nothing,
    all_is_finite,
]


def applies(law: Callable[[Case], None], mechanism: Mechanism) -> bool:
    """A window has a place, so the order of slots matters to it; every other law holds for all."""
    return not (law is order_of_slots_is_irrelevant and mechanism.windowed)


def is_in_short_table(law: Callable[[Case], None], mechanism: Mechanism) -> bool:
    """Whether `make test` runs it: each law meets each score and each normalizer, not all pairs."""
    score, normalizer = [*SCORES].index(mechanism.score), [*NORMALIZERS].index(mechanism.normalizer)
    return mechanism.windowed or (score + normalizer + LAWS.index(law)) % len(NORMALIZERS) < 2


@pytest.mark.parametrize(
    ("law", "mechanism"),
    [
        pytest.param(
            law,
            mechanism,
            id=f"{law.__name__}-{mechanism}",
            marks=[] if is_in_short_table(law, mechanism) else [pytest.mark.full],
        )
        for law in LAWS
        for mechanism in MECHANISMS
        if applies(law, mechanism)
    ],
)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_law(law: Callable[[Case], None], mechanism: Mechanism, data: st.DataObject):
    law(data.draw(cases(mechanism)))


def test_every_normalizer_but_softmax_is_explicit_and_softmax_is_the_default():
    assert implementation_of(NORMALIZERS["softmax"]) is softmax
    assert Attention(make_score("dot", 1, 1)[0]).normalize is softmax
