"""Poolings against loops, and classifiers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard.attention.observe import observe
from regard.layers.output_heads import ClassifierHead, LastPooling, build_pooling

NAMES = ("first", "last", "mean", "max", "attention")
STATES = torch.tensor(
    [[[1.0, -4.0], [3.0, -2.0], [8.0, 8.0]], [[5.0, -1.0], [2.0, -6.0], [2.0, -3.0]]]
)
VALID = torch.tensor([[True, True, False], [True, True, True]])


@pytest.mark.parametrize(
    ("name", "pooled"),
    [
        ("first", [[1, -4], [5, -1]]),
        ("last", [[3, -2], [2, -3]]),
        ("mean", [[2, -3], [3, -10 / 3]]),
        ("max", [[3, -2], [5, -1]]),
    ],
)
def test_by_hand(name, pooled):
    torch.testing.assert_close(build_pooling(name, 2)(STATES, VALID), torch.tensor(pooled).float())


def test_backward_columns_are_taken_at_the_first_position():
    pooled = LastPooling(backward_dim=1)(STATES, VALID)
    torch.testing.assert_close(pooled, torch.tensor([[3.0, -4.0], [2.0, -1.0]]))


@pytest.mark.parametrize("queries", [1, 3])
def test_attention_is_its_equation(queries):
    """Yang et al. 2016, eq. 5-7, row by row, with several queries."""
    pool = build_pooling("attention", 4, hidden_dim=5, queries=queries).double()
    states = torch.randn(2, 3, 4, dtype=torch.float64)
    p = {name: weight.detach() for name, weight in pool.named_parameters()}
    W, b = p["attention.score.of_key.weight"], p["attention.score.of_key.bias"]
    expected = []
    for row, real in zip(states, VALID.sum(1).tolist(), strict=True):
        parts = []
        for u in p["query"]:
            energy = torch.stack([u @ torch.tanh(W @ h + b) for h in row[:real]])
            alpha = energy.exp() / energy.exp().sum()
            parts.append(sum(a * h for a, h in zip(alpha, row, strict=False)))
        expected.append(torch.cat(parts))
    with observe(pool) as recorded:
        pooled = pool(states, VALID)
    torch.testing.assert_close(pooled, torch.stack(expected), rtol=1e-10, atol=1e-12)
    assert recorded.joined()["attention"].shape == (2, queries, 3)


@settings(max_examples=30)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_padding_anywhere_does_not_matter(data, name):
    """The content, amount and location of padding do not matter."""
    length, more = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 3))
    states = torch.randn(1, length, 4, dtype=torch.float64)
    places = torch.tensor(sorted(data.draw(st.permutations(range(length + more)))[:length]))
    wide = 1e6 * torch.randn(1, length + more, 4, dtype=torch.float64)
    valid = torch.zeros(1, length + more, dtype=torch.bool)
    wide[:, places], valid[:, places] = states, True
    pooling = build_pooling(name, 4, backward_dim=2).double()
    alone = pooling(states, torch.ones(1, length, dtype=torch.bool))
    torch.testing.assert_close(pooling(wide, valid), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_row_is_zeros_with_finite_gradients(name):
    pooling = build_pooling(name, 2, backward_dim=1)
    states = STATES.clone().requires_grad_()
    pooled = pooling(states, torch.tensor([[False] * 3, [True] * 3]))
    assert not pooled[0].any()
    assert pooled[1].any()
    (pooled**2).sum().backward()
    assert states.grad is not None
    assert not states.grad[0].any()
    for tensor in (states, *pooling.parameters()):
        assert tensor.grad.isfinite().all()


def test_wrong_poolings(unchecked):
    with pytest.raises(ValueError, match=r"pooling must be one of first, .*, not 'sum'"):
        build_pooling("sum", 2)
    with pytest.raises(ValueError, match="queries must be 1 for pooling"):
        build_pooling("mean", 2, queries=2)


class TestClassifier:
    def test_it_is_linear(self):
        head = ClassifierHead(2, 3)
        nn.init.constant_(head.output.bias, 1.0)
        with torch.no_grad():
            head.output.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]]))
        logits = head(torch.tensor([[[3.0, 4.0]]]))  # any leading axes: a tagger has positions
        torch.testing.assert_close(logits, torch.tensor([[[4.0, 5.0, 3.0]]]))

    def test_a_hidden_layer(self):
        head = ClassifierHead(4, 2, hidden_dim=5)
        V, a, W, b = head.parameters()
        x = torch.randn(3, 4)
        torch.testing.assert_close(head(x), torch.tanh(x @ V.T + a) @ W.T + b)

    def test_dropout_is_for_training(self):
        head, x = ClassifierHead(50, 2, hidden_dim=50, dropout=0.5), torch.ones(1, 50)
        assert not torch.equal(head(x), head(x))
        head.eval()
        assert torch.equal(head(x), head(x))


def test_wrong_classifiers(unchecked):
    with pytest.raises(ValueError, match="classes must be positive, not 0"):
        ClassifierHead(2, 0)
    with pytest.raises(ValueError, match="x must be 2 wide, not 3"):
        ClassifierHead(2, 2)(torch.ones(1, 3))
    with pytest.raises(ValueError, match="dropout must be in"):
        ClassifierHead(2, 2, dropout=1.0)
