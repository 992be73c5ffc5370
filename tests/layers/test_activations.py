"""The tanh form of GELU against its equation, with its gradient."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from regard.layers.activations import ACTIVATIONS, build_activation, tanh_gelu


def test_tanh_gelu_is_its_equation_with_and_without_gradient():
    x = torch.linspace(-6, 6, 41, dtype=torch.float64).requires_grad_()
    want = 0.5 * x * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh())
    torch.testing.assert_close(tanh_gelu(x), want, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(tanh_gelu(x.detach()), want.detach(), rtol=1e-12, atol=1e-12)
    assert gradcheck(tanh_gelu, (x,))


def test_its_slope_is_torchs_and_stays_finite(unchecked):
    x = torch.tensor([-1e4, -30.0, -3.0, -0.0, 0.5, 3.0, 30.0, 1e4], requires_grad=True)
    (ours,) = torch.autograd.grad(tanh_gelu(x).sum(), x)
    (theirs,) = torch.autograd.grad(F.gelu(x, approximate="tanh").sum(), x)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(tanh_gelu))(x.detach()), theirs)


def test_activations_have_names():
    x = torch.randn(5)
    torch.testing.assert_close(build_activation("swish")(x), x * x.sigmoid())
    torch.testing.assert_close(build_activation("gelu")(x), x * 0.5 * (1 + (x / 2**0.5).erf()))
    with pytest.raises(ValueError, match="activation: unknown name 'mish'; choose from relu, gelu"):
        build_activation("mish")
    assert all(call(torch.zeros(1)) == 0 for call in ACTIVATIONS.values())
