"""Products by oneDNN are those of torch, and packed weights follow their parameters."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.kernels import linear as kernels
from regard.kernels.linear import (
    Linear,
    add_linear,
    joint_linear,
    linear,
    packed_weight,
    release_packed_weights,
)

needs_onednn = pytest.mark.skipif(not kernels.HAS_ONEDNN, reason="torch was built without oneDNN")


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small products use oneDNN, too."""
    for name in ("MIN_PACKED_SIZE", "MIN_REPEATED_SIZE", "MIN_SIZE"):
        monkeypatch.setattr(kernels, name, 0)


def tensors(*shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def is_packed(parameter: Tensor) -> bool:
    return bool(getattr(parameter, "packed", None))


@pytest.mark.parametrize("shape", [(5, 12), (2, 3, 12), (1, 12), (2, 0, 12)])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("is_parameter", [True, False])
def test_product_is_that_of_torch(shape: tuple[int, ...], has_bias: bool, is_parameter: bool):
    x, weight, bias = tensors(shape, (7, 12), (7,))
    weight = nn.Parameter(weight) if is_parameter else weight
    with torch.no_grad():
        product = linear(x, weight, bias if has_bias else None)
        torch.testing.assert_close(product, F.linear(x, weight, bias if has_bias else None))


@pytest.mark.parametrize("shape", [(5, 12), (2, 3, 12)])
def test_gradients_are_those_of_torch(shape: tuple[int, ...]):
    x, weight, bias, direction = tensors(shape, (7, 12), (7,), (*shape[:-1], 7))
    gradients = []
    for function in (linear, F.linear):
        leaves = [part.clone().requires_grad_() for part in (x, weight, bias)]
        gradients.append(torch.autograd.grad((function(*leaves).tanh() * direction).sum(), leaves))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_second_derivatives_are_those_of_torch():
    x, weight = tensors((5, 12), (7, 12))
    results = []
    for function in (linear, F.linear):
        leaves = [part.clone().requires_grad_() for part in (x, weight)]
        first = torch.autograd.grad(function(*leaves).tanh().sum(), leaves, create_graph=True)
        results.append(torch.autograd.grad(sum(part.square().sum() for part in first), leaves))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_views_and_strides():
    x, weight, wide = tensors((5, 12), (7, 24), (5, 40))
    parameter = nn.Parameter(weight)
    for rows in (x, x.t().contiguous().t(), wide[:, 3:15], wide[:, 1:25:2]):
        for view in (parameter[:, :12], parameter[:, 12:], parameter[2:5, 6:18], parameter[:, ::2]):
            with torch.no_grad():
                torch.testing.assert_close(linear(rows, view), F.linear(rows, view))
            torch.testing.assert_close(linear(rows, view), F.linear(rows, view))


def test_add_and_joint_products():
    x, base, weight = tensors((5, 12), (5, 7), (7, 12))
    layers = [Linear(12, size) for size in (3, 4, 5)]
    plain = [nn.Linear(12, 4, bias=False) for _ in range(2)]
    for has_grad in (True, False):
        with torch.set_grad_enabled(has_grad):
            expected = base + F.linear(x, weight)
            torch.testing.assert_close(add_linear(base, x, nn.Parameter(weight)), expected)
            for group in (layers, plain):
                for output, layer in zip(joint_linear(x, group), group, strict=True):
                    torch.testing.assert_close(output, F.linear(x, layer.weight, layer.bias))


@needs_onednn
@pytest.mark.parametrize("is_fused", [True, False])
def test_a_packed_weight_follows_its_parameter(is_fused: bool):
    """Also after a step of a fused optimizer, which does not count its changes."""
    layer, (x,) = Linear(12, 7), tensors((5, 12))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=is_fused)
    changes = [
        lambda: layer.load_state_dict(nn.Linear(12, 7).state_dict()),
        lambda: layer.double().float(),
        lambda: setattr(layer.weight, "data", layer.weight.data * 2),
        optimizer.step,
    ]
    for change in changes:
        layer(x).sum().backward()
        with torch.inference_mode():
            layer(x)
        assert is_packed(layer.weight)
        change()
        with torch.inference_mode():
            torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias))


@needs_onednn
def test_a_weight_is_packed_once_and_released():
    layer, (x,) = Linear(12, 7), tensors((5, 12))
    with torch.inference_mode():
        layer(x)
        first = packed_weight(layer.weight, layer.weight)
        layer(x[:2])
        assert packed_weight(layer.weight, layer.weight) is first
    assert list(layer.state_dict()) == ["weight", "bias"]
    release_packed_weights(layer)
    assert not is_packed(layer.weight)


@pytest.mark.filterwarnings("ignore:TF32")  # torch warns when it restores its own defaults
def test_other_dtypes_and_modes_use_torch():
    layer, (x,) = Linear(12, 7), tensors((5, 12))
    assert layer.double()(x.double()).dtype == torch.float64
    layer.float()
    with torch.inference_mode():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
        with torch.backends.mkldnn.flags(enabled=False):
            assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
    assert not is_packed(layer.weight)
    per_row = torch.func.vmap(lambda row: linear(row, layer.weight, layer.bias))(x)
    torch.testing.assert_close(per_row, layer(x))
