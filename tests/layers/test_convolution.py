"""Causal convolution against a loop and `F.conv1d`, and its invariants."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from regard.layers.convolution import CausalConvolution, GatedConvolution

DOUBLE = torch.float64
SIZES = [(1, 1), (2, 1), (2, 4), (3, 2), (5, 3)]  # kernel, dilation


def by_loop(convolution: CausalConvolution, states: Tensor) -> Tensor:
    """Compute the equation, number by number."""
    kernel, dilation, dim = convolution.kernel, convolution.dilation, convolution.dim
    weight, bias = convolution.of_window.weight, convolution.of_window.bias
    out = torch.empty(*states.shape[:2], len(bias), dtype=DOUBLE)
    for b, t in [(b, t) for b in range(states.shape[0]) for t in range(states.shape[1])]:
        for o in range(len(bias)):
            total = bias[o].item()
            for j in range(kernel):
                place = t - (kernel - 1 - j) * dilation
                for i in range(dim) if place >= 0 else ():
                    total += weight[o, j * dim + i].item() * states[b, place, i].item()
            out[b, t, o] = total
    return out


@pytest.mark.parametrize(("kernel", "dilation"), SIZES)
def test_is_the_equation_and_torchs_convolution(kernel: int, dilation: int):
    convolution = CausalConvolution(3, 4, kernel=kernel, dilation=dilation).double()
    states = torch.randn(2, 7, 3, dtype=DOUBLE)
    got, _ = convolution(states)
    torch.testing.assert_close(got, by_loop(convolution, states), rtol=1e-10, atol=1e-12)
    weight = convolution.of_window.weight.unflatten(1, (kernel, 3)).mT  # [out, in, kernel]
    padded = F.pad(states.mT, (convolution.lookback, 0))
    expected = F.conv1d(padded, weight, convolution.of_window.bias, dilation=dilation).mT
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("kernel", "dilation"), SIZES)
def test_gate_is_the_equation(kernel: int, dilation: int):
    gated = GatedConvolution(3, 2, kernel=kernel, dilation=dilation).double()
    states = torch.randn(2, 6, 3, dtype=DOUBLE)
    raw = by_loop(gated.both, states)
    got, _ = gated(states)
    for index in torch.cartesian_prod(*map(torch.arange, (2, 6, 2))).tolist():
        b, t, o = index
        signal, gate = raw[b, t, o].item(), raw[b, t, 2 + o].item()
        expected = math.tanh(signal) / (1 + math.exp(-gate))
        assert got[b, t, o].item() == pytest.approx(expected, rel=1e-10)


def test_by_hand():
    convolution = CausalConvolution(1, 1, kernel=2, dilation=2)
    with torch.no_grad():
        convolution.of_window.weight.copy_(torch.tensor([[10.0, 1.0]]))
        convolution.of_window.bias.zero_()
    out, past = convolution(torch.tensor([[[1.0], [2], [3], [4]]]))
    assert out.flatten().tolist() == [1, 2, 13, 24]
    assert past.flatten().tolist() == [3, 4]


def test_gradients():
    gated = GatedConvolution(2, 2, kernel=3, dilation=2).double()
    states = torch.randn(2, 5, 2, dtype=DOUBLE, requires_grad=True)
    past = torch.randn(2, 4, 2, dtype=DOUBLE, requires_grad=True)
    valid = torch.arange(5) < torch.tensor([[5], [3]])
    assert gradcheck(lambda s, p: gated(s, valid, p), (states, past))
    weight = gated.both.of_window.weight
    tied = lambda w: torch.func.functional_call(gated, {"both.of_window.weight": w}, (states,))[0]  # noqa: E731
    assert gradcheck(tied, (weight,))


@settings(max_examples=30)
@given(st.sampled_from(SIZES), st.integers(1, 11), st.data())
def test_the_future_changes_nothing(size: tuple[int, int], length: int, data: st.DataObject):
    gated = GatedConvolution(3, 2, kernel=size[0], dilation=size[1])
    now = data.draw(st.integers(0, length - 1))
    states = torch.randn(2, length, 3)
    changed = states.clone()
    changed[:, now + 1 :] = 1e3 * torch.randn(2, length - now - 1, 3)
    assert torch.equal(gated(states)[0][:, : now + 1], gated(changed)[0][:, : now + 1])
    states.requires_grad_()
    (slope,) = torch.autograd.grad(gated(states)[0][:, now].sum(), states)
    assert (slope[:, now + 1 :] == 0).all()
    assert (slope[:, now] != 0).any()
    reached = {now - j * size[1] for j in range(size[0])}
    unreached = [t for t in range(length) if t not in reached]
    assert (slope[:, unreached] == 0).all()


@settings(max_examples=30)
@given(st.sampled_from(SIZES), st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_stepping_equals_one_pass(size: tuple[int, int], pieces: list[int]):
    gated = GatedConvolution(3, 2, kernel=size[0], dilation=size[1]).double()
    states = torch.randn(2, sum(pieces), 3, dtype=DOUBLE)
    full, end = gated(states)
    past, steps = None, []
    for piece in states.split(pieces, 1):
        out, past = gated(piece, past=past)
        assert past.shape == (2, gated.lookback, 3)
        steps.append(out)
    torch.testing.assert_close(torch.cat(steps, 1), full, rtol=1e-10, atol=1e-12)
    assert torch.equal(past, end)


@pytest.mark.parametrize(("kernel", "dilation"), SIZES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_irrelevant_through_two_layers(kernel: int, dilation: int, side: str):
    first = GatedConvolution(3, 3, kernel=kernel, dilation=dilation).double()
    second = GatedConvolution(3, 2, kernel=kernel, dilation=2 * dilation).double()
    states, length = torch.randn(1, 6, 3, dtype=DOUBLE), 6
    alone = second(first(states)[0])[0]
    for padding in (1, 5):
        noise = torch.randn(1, padding, 3, dtype=DOUBLE)
        valid = torch.ones(1, length + padding, dtype=torch.bool)
        if side == "left":
            padded, real = torch.cat([noise, states], 1), slice(padding, None)
        else:
            padded, real = torch.cat([states, noise], 1), slice(0, length)
        valid[:] = False
        valid[:, real] = True
        got = second(first(padded, valid)[0], valid)[0]
        torch.testing.assert_close(got[:, real], alone, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, DOUBLE])
def test_stays_finite_and_keeps_the_dtype(dtype: torch.dtype):
    gated = GatedConvolution(4, 4, kernel=3).to(dtype)
    states = (1e4 * torch.randn(2, 5, 4)).to(dtype).requires_grad_()
    out, _ = gated(states)
    out.sum().backward()
    assert out.dtype == dtype
    assert out.isfinite().all()
    assert states.grad is not None
    assert states.grad.isfinite().all()


def test_compiles_as_one_graph(unchecked: None):
    gated = GatedConvolution(4, 3, kernel=2, dilation=2)
    states, valid = torch.randn(2, 5, 4), torch.arange(5) < torch.tensor([[5], [3]])
    compiled = torch.compile(gated, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(states, valid), gated(states, valid))


def test_bad_arguments(unchecked: None):
    gated = GatedConvolution(4, 3, kernel=2, dilation=2)
    states = torch.zeros(2, 5, 4)
    for shape in ([2, 5, 3], [5, 4], [4]):
        got = str(shape)[1:-1]
        with pytest.raises(ValueError, match=rf"^states must be .*positions, 4\], not \[{got}\]$"):
            gated(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"^states must be floating point, not torch\.int64$"):
        gated(states.long())
    with pytest.raises(ValueError, match=r"^states must be torch\.float32 like the weights"):
        gated(states.double())
    with pytest.raises(ValueError, match=r"^states holds NaN, first at \(0, 0, 0\)"):
        gated(states * math.nan)
    with pytest.raises(ValueError, match=r"^past must have shape \(2, 2, 4\), not \(2, 1, 4\)$"):
        gated(states, past=torch.zeros(2, 1, 4))
    with pytest.raises(
        ValueError, match=r"^valid has shape \(2, 4\), which does not fit \(2, 5\)$"
    ):
        gated(states, torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"^valid must be boolean"):
        gated(states, torch.ones(2, 5))
    with pytest.raises(ValueError, match=r"^kernel must be positive, not 0$"):
        GatedConvolution(4, 3, kernel=0)
    with pytest.raises(ValueError, match=r"^dilation must be positive, not 0$"):
        GatedConvolution(4, 3, dilation=0)
