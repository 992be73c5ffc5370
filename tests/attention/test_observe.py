"""Recording and editing attention weights from outside the model."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.masks import causal
from regard.attention.multihead import MultiHead
from regard.attention.observe import intervene, named_attentions, observe, replace, scale, zero
from regard.attention.scores import Additive, ScaledDot


class Small(nn.Module):
    """Two kinds of attention, one of them called step by step."""

    def __init__(self):
        super().__init__()
        self.own = MultiHead(Attention(ScaledDot(), dropout=0.2), 8, 2)
        self.aligned = Attention(Additive(8, 8, 4), dropout=0.2)

    def forward(self, states: Tensor) -> Tensor:
        states = self.own(states, self.own.remember(states), causal)
        memory = self.aligned.remember(states)
        return torch.cat([self.aligned(states[:, t : t + 1], memory) for t in range(3)], 1)


@pytest.mark.parametrize("training", [False, True])
def test_observation_records_all_and_changes_nothing(training: bool):
    model, states = Small().train(training), torch.randn(2, 5, 8, requires_grad=True)
    torch.manual_seed(1)
    before = model(states)
    (slope,) = torch.autograd.grad(before.sum(), states)
    torch.manual_seed(1)
    with observe(model) as recorded:
        during = model(states)
    (same_slope,) = torch.autograd.grad(during.sum(), states)
    assert torch.equal(before, during)
    assert torch.equal(slope, same_slope)
    assert {name: len(calls) for name, calls in recorded.items()} == {"own": 1, "aligned": 3}
    joined = recorded.joined()
    assert joined["own"].shape == (2, 2, 5, 5)
    assert joined["aligned"].shape == (2, 3, 5)
    for weights in joined.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert not weights.requires_grad
    model(states)
    assert len(recorded["own"]) == 1  # no observer any more


def test_observe_can_be_nested_and_survives_an_error():
    model = Small().eval()
    with observe(model) as outer:
        with observe(model) as inner:
            model(torch.randn(1, 4, 8))
        with pytest.raises(ZeroDivisionError), observe(model):
            raise ZeroDivisionError
        model(torch.randn(1, 4, 8))
    assert len(inner["own"]) == 1
    assert len(outer["own"]) == 2
    assert not model.own.attention.hooks


def test_the_weights_may_keep_their_gradient():
    """Outputs are equal, and the weights of the named attentions have the gradient of `weigh`."""
    model, states = Small().eval(), torch.randn(2, 5, 8, requires_grad=True)
    with observe(model, ["own"], detach=False) as recorded:
        during = model(states)
    assert torch.equal(during, model(states))
    assert list(recorded) == ["own"]
    weights = recorded.joined()["own"]
    heads, factor = model.own, torch.rand_like(weights)
    query = heads.split_heads(heads.to_query(states))
    expected = heads.attention.weigh(query, heads.remember(states), causal)
    (slope,) = torch.autograd.grad((weights * factor).sum(), states)
    (same,) = torch.autograd.grad((expected * factor).sum(), states)
    torch.testing.assert_close(slope, same)
    with observe(model, detach=False) as steps:
        model(states)
    assert all(call.requires_grad for calls in steps.values() for call in calls)
    assert not model.own.attention.hooks
    with torch.no_grad(), observe(model, detach=False) as nothing:
        model(states)
    assert not any(call.requires_grad for calls in nothing.values() for call in calls)


def test_an_outer_observer_gets_detached_weights():
    model = Small().eval()
    with observe(model) as outer, observe(model, detach=False) as inner:
        model(torch.randn(1, 4, 8, requires_grad=True))
    assert inner["own"][0].requires_grad
    assert not outer["own"][0].requires_grad
    assert torch.equal(inner["own"][0], outer["own"][0])


def test_a_growing_cache_is_joined_with_zeros():
    heads = MultiHead(Attention(ScaledDot()), 8, 2).eval()
    states = torch.randn(1, 4, 8)
    with torch.no_grad(), observe(heads) as full:
        heads(states, heads.remember(states), causal)
    with torch.no_grad(), observe(heads) as steps:
        memory = heads.remember(states[:, :1])
        heads(states[:, :1], memory, causal)
        for t in range(1, 4):
            memory = memory.append(heads.remember(states[:, t : t + 1]))
            heads(states[:, t : t + 1], memory, causal)
    torch.testing.assert_close(steps.joined()["attention"], full.joined()["attention"])


def test_edited_weights_are_used():
    model, states = Small().eval(), torch.randn(2, 5, 8)
    attention = model.own.attention
    plain = model.own(states, model.own.remember(states))
    with intervene(model, {"own": scale(1.0)}):
        torch.testing.assert_close(model.own(states, model.own.remember(states)), plain)
    with intervene(model, {"own": zero()}):
        nothing = model.own(states, model.own.remember(states))
        torch.testing.assert_close(nothing, model.own.out.bias.expand_as(nothing))
    with intervene(model, {"own": zero(heads=[1])}), observe(model) as recorded:
        model.own(states, model.own.remember(states))
    assert (recorded["own"][0][:, 1] == 0).all()
    assert (recorded["own"][0][:, 0] > 0).all()
    even = torch.full((5, 5), 0.2)
    with intervene(model, {"own": replace(even, heads=[-1])}), observe(model) as recorded:
        model.own(states, model.own.remember(states))
    assert (recorded["own"][0][:, 1] == 0.2).all()
    assert not attention.hooks
    assert torch.equal(model.own(states, model.own.remember(states)), plain)


def test_an_intervention_reaches_the_gradient():
    model, states = Small().eval(), torch.randn(1, 5, 8, requires_grad=True)
    with intervene(model, {"aligned": replace(torch.tensor([0.0, 0, 0, 0, 1]))}):
        model(states)[0, 0].sum().backward()
    assert states.grad is not None
    assert states.grad[0, 4].abs().sum() > 0  # position 0 reads the last one only


@pytest.mark.usefixtures("unchecked")
class TestBadInput:
    def test_names(self):
        with (
            pytest.raises(ValueError, match="no attention 'alined'; did you mean 'aligned'"),
            intervene(Small(), {"alined": zero()}),
        ):
            pass
        with (
            pytest.raises(ValueError, match="names: the model has no attention 'alined'; did you"),
            observe(Small(), ["alined"]),
        ):
            pass
        with (
            pytest.raises(ValueError, match="no attention 'x'; choose from own, aligned"),
            intervene(Small(), {"x": zero()}),
        ):
            pass
        with (
            pytest.raises(ValueError, match="model Linear has no attention"),
            observe(nn.Linear(1, 1)),
        ):
            pass

    @pytest.mark.parametrize(
        ("name", "edit", "message"),
        [
            ("own", zero(heads=[2]), r"heads \[2\] do not all exist; this attention has 2"),
            ("aligned", zero(heads=[0]), "this attention has no heads"),
            (
                "own",
                replace(torch.zeros(3)),
                r"replacement of shape \(3,\) does not fit weights of shape \(1, 2, 5, 5\)",
            ),
        ],
    )
    def test_edits(self, name: str, edit, message: str):
        model = Small()
        with pytest.raises(ValueError, match=message), intervene(model, {name: edit}):
            model(torch.zeros(1, 5, 8))


def test_threads_do_not_see_each_other():
    """Observers and edits of one thread do not affect calls of other threads."""
    model, states = Small().eval(), torch.randn(2, 5, 8)
    with torch.no_grad():
        plain = model(states)
        with observe(model) as alone:
            model(states)
        with intervene(model, {"own": zero()}):
            silenced = model(states)

    def call(number: int) -> bool:
        with torch.no_grad():
            if number % 3 == 0:
                return torch.equal(model(states), plain)
            if number % 3 == 1:
                with observe(model) as recorded:
                    output = model(states)
                same = all(torch.equal(recorded.joined()[n], w) for n, w in alone.joined().items())
                return same and len(recorded["own"]) == 1 and torch.equal(output, plain)
            with intervene(model, {"own": zero()}):
                return torch.equal(model(states), silenced)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(240)))
    assert not any(attention.hooks for attention in named_attentions(model).values())
