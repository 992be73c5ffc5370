"""Activation functions by name, for the feed-forward layer of a block."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor as is_transformed
from torch.autograd.function import once_differentiable

from regard.attention.autograd import AutogradContext
from regard.errors import InputError
from regard.kernels.prepared import OutputFunction

ActivationFunction = Callable[[Tensor], Tensor]

SLOPE, CUBE = 2 * math.sqrt(2 / math.pi), 0.044715


def tanh_gelu(x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))  (Hendrycks & Gimpel 2016, 2; GPT-2)."""
    use_torch = x.device.type != "cpu" or torch.compiler.is_compiling() or is_transformed(x)
    if use_torch or not (x.requires_grad and torch.is_grad_enabled()):
        return F.gelu(x, approximate="tanh")
    return _TanhGelu.apply(x)


class _TanhGelu(torch.autograd.Function):
    """x s with s = sigmoid(a x + b x^3), and its slope s + x s (1 - s) (a + 3 b x^2).

    The slope is computed in the forward pass. On a CPU this takes 60 % of the time of torch's
    function, forward and backward.
    """

    @staticmethod
    def forward(ctx: AutogradContext, x: Tensor) -> Tensor:
        square = x.square()
        s = square.mul(SLOPE * CUBE).add_(SLOPE).mul_(x).sigmoid_()
        y = x * s
        slope = square.mul_(3 * SLOPE * CUBE).add_(SLOPE).mul_(y)
        ctx.save_for_backward(slope.addcmul_(slope, s, value=-1).add_(s))
        return y

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator's names
        ctx: AutogradContext, *grads: Tensor
    ) -> Tensor:
        return grads[0] * ctx.saved_tensors[0]


ACTIVATIONS: dict[str, ActivationFunction] = {
    "relu": F.relu,
    "gelu": F.gelu,  # x Phi(x), with the error function: BERT
    "tanh_gelu": tanh_gelu,
    "swish": F.silu,  # x sigmoid(x)  (Ramachandran et al. 2017)
    "tanh": torch.tanh,
}


# the names and variants of activations in oneDNN
ONEDNN_NAMES: dict[ActivationFunction, tuple[str, str]] = {
    F.relu: ("relu", ""),
    F.gelu: ("gelu", "none"),
    tanh_gelu: ("gelu", "tanh"),
    F.silu: ("swish", ""),
}


def output_function(activation: ActivationFunction) -> OutputFunction:
    """Return an activation as the last part of a linear layer."""
    return OutputFunction(activation, *ONEDNN_NAMES.get(activation, ("none", "")))


def build_activation(name: str) -> ActivationFunction:
    if name not in ACTIVATIONS:
        raise InputError(f"activation: unknown name {name!r}; choose from {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
