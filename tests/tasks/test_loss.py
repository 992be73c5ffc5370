"""The loss against a loop over its equation."""

import pytest
import torch
from torch import nn

from regard.layers.embedding import Embedding
from regard.tasks import loss as module
from regard.tasks.loss import cross_entropy

F64 = torch.float64


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 3, 256])
def test_smoothed_cross_entropy_is_its_equation(
    smoothing: float, rows: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "LOGITS_PER_SLICE", 6 * rows)
    layer = nn.Linear(4, 6, dtype=F64)
    states = torch.randn(2, 5, 4, dtype=F64)
    target = torch.randint(1, 6, (2, 5))
    valid = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    loss = cross_entropy(layer, states, target, valid, smoothing=smoothing)
    want = 0.0
    for b, t in valid.nonzero().tolist():
        log_p = layer(states[b, t]).log_softmax(-1)
        for word in range(6):
            label = smoothing / 5 if word != 0 else 0.0
            label += (1 - smoothing) * (word == target[b, t].item())
            want -= label * log_p[word].item()
    assert loss.count == 7
    assert loss.total.item() == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [3, 256])
def test_gradient_is_that_of_autograd(smoothing: float, rows: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LOGITS_PER_SLICE", 6 * rows)
    layer = nn.Linear(4, 6, dtype=F64)
    states = torch.randn(2, 5, 4, dtype=F64, requires_grad=True)
    target = torch.randint(1, 6, (2, 5))
    valid = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    labels = nn.functional.one_hot(target[valid], 6).double() * (1 - smoothing)
    labels[:, 1:] += smoothing / 5
    plain = -(labels * layer(states[valid]).log_softmax(-1)).sum()
    inputs = (states, layer.weight, layer.bias)
    wanted = torch.autograd.grad(plain * 3, inputs)
    loss = cross_entropy(layer, states, target, valid, smoothing=smoothing)
    found = torch.autograd.grad(loss.total * 3, inputs)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)


def test_gradient_goes_only_where_it_is_wanted():
    layer, states = nn.Linear(4, 6, bias=False), torch.randn(1, 3, 4, requires_grad=True)
    layer.weight.requires_grad_(False)
    valid = torch.ones(1, 3, dtype=torch.bool)
    cross_entropy(layer, states, torch.ones(1, 3).long(), valid).total.backward()
    assert states.grad is not None
    assert layer.weight.grad is None


def test_tied_table_keeps_its_padding_row():
    table = Embedding(6, 4, padding=0)
    states, valid = torch.randn(1, 3, 4), torch.ones(1, 3, dtype=torch.bool)
    cross_entropy(table, states, torch.ones(1, 3).long(), valid).total.backward()
    assert table.weight.grad is not None
    assert (table.weight.grad[0] == 0).all()
    assert (table.weight.grad[1:] != 0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_full(dtype: torch.dtype):
    layer, states = nn.Linear(4, 6, dtype=dtype), torch.randn(1, 3, 4, dtype=dtype)
    valid, states = torch.ones(1, 3, dtype=torch.bool), states.requires_grad_()
    total = cross_entropy(layer, states, torch.ones(1, 3).long(), valid).total
    total.backward()
    assert total.dtype == torch.float32
    assert states.grad is not None
    assert states.grad.dtype == dtype


def test_padding_has_no_gradient():
    states = torch.randn(1, 3, 4, requires_grad=True)
    valid = torch.tensor([[True, True, False]])
    cross_entropy(nn.Linear(4, 6), states, torch.zeros(1, 3).long(), valid).total.backward()
    assert states.grad is not None
    assert (states.grad[0, 2] == 0).all()
    assert (states.grad[0, :2] != 0).all()


def test_smoothing_in_range():
    with pytest.raises(ValueError, match="smoothing must be in"):
        cross_entropy(
            nn.Linear(1, 2),
            torch.zeros(1, 1, 1),
            torch.zeros(1, 1).long(),
            torch.ones(1, 1).bool(),
            smoothing=1.0,
        )
