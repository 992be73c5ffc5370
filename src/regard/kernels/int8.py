"""Products with weights of 8 bits, by oneDNN.

    W ~ s_w Q_w        one scale for each row of W: s_w = max |w| / 127
    x ~ s_x Q_x        one scale for each row of x, so that no row depends on another
    x W' ~ s_x (Q_x Q_w') s_w, summed in 32 bits

n: rows   d: width of the input   e: width of the output
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Int8, UInt8
from torch import Tensor, nn

from regard.kernels.compiled import native

HAS_INT8 = torch.backends.mkldnn.is_available() and hasattr(torch.ops.onednn, "qlinear_pointwise")
MAX_INT8 = 127
INPUT_ZERO = 128  # inputs are stored without a sign
MIN_SCALE = 1e-30  # for a row of zeros


class Int8Weight(NamedTuple):
    """A weight of 8 bits in oneDNN's order, with the scale and the zero of each row."""

    packed: Tensor
    scales: Float[Tensor, " e"]
    zeros: Int[Tensor, " e"]

    def multiply(
        self,
        x: Float[Tensor, "*n d"],
        bias: Float[Tensor, " e"] | None,
        *,
        is_relu: bool = False,
    ) -> Float[Tensor, "*n e"]:
        """Return x W' + b, or its positive part."""
        numbers, scale = round_rows(x)
        product = torch.ops.onednn.qlinear_pointwise.default(
            *(numbers, 1 / MAX_INT8, INPUT_ZERO),
            *self,
            *(None, 1.0, 0, torch.float32, "none", [], ""),
        )
        return finish_product(product, scale, bias, is_relu=is_relu)


def round_rows(x: Float[Tensor, "*n d"]) -> tuple[UInt8[Tensor, "*n d"], Float[Tensor, "*n 1"]]:
    """Return Q_x + 128 and 127 s_x.

    The operations of torch are those that it has vectorized: `addcmul` with a scale for each row,
    or a conversion from floats to `uint8`, take ten times as long.
    """
    if native is not None and x.is_contiguous():
        numbers, scale = torch.empty_like(x, dtype=torch.uint8), x.new_empty(*x.shape[:-1], 1)
        addresses = x.data_ptr(), numbers.data_ptr(), scale.data_ptr()
        native.quantize_rows(*addresses, scale.numel(), x.shape[-1])
        return numbers, scale
    scale = x.abs().amax(-1, keepdim=True).clamp_min_(MIN_SCALE)
    numbers = (x * (MAX_INT8 / scale)).round_().to(torch.int8)
    return numbers.view(torch.uint8).bitwise_xor_(INPUT_ZERO), scale  # adds it, modulo 256


def finish_product(
    product: Float[Tensor, "*n e"],
    scale: Float[Tensor, "*n 1"],
    bias: Float[Tensor, " e"] | None,
    *,
    is_relu: bool,
) -> Float[Tensor, "*n e"]:
    """Scale a product in place, and add the bias."""
    if native is not None and (bias is None or bias.is_contiguous()):
        native.finish_rows(
            *(product.data_ptr(), scale.data_ptr(), 0 if bias is None else bias.data_ptr()),
            *(is_relu, 0, 0, 0, 0.0, scale.numel(), product.shape[-1]),
        )
        return product
    product.mul_(scale)
    if bias is not None:
        product.add_(bias)
    return product.relu_() if is_relu else product


def pack_int8(weight: Float[Tensor, "e d"]) -> Int8Weight:
    """Round a weight to 8 bits, and pack it."""
    numbers, scales = round_weight(weight)
    zeros = torch.zeros(len(weight), dtype=torch.int32)
    return Int8Weight(torch.ops.onednn.qlinear_prepack(numbers, None), scales, zeros)


def round_weight(weight: Float[Tensor, "e d"]) -> tuple[Int8[Tensor, "e d"], Float[Tensor, " e"]]:
    """Return Q_w and s_w."""
    scales = (weight.abs().amax(1) / MAX_INT8).clamp_min_(MIN_SCALE)
    return (weight / scales[:, None]).round_().to(torch.int8), scales


def mark_int8(model: nn.Module) -> None:
    """Let the products of a model with its weights use 8 bits in inference."""
    for parameter in model.parameters():
        if parameter.ndim == 2:
            setattr(parameter, "uses_int8", True)  # noqa: B010 - torch does not know it


def uses_int8(parameter: Tensor) -> bool:
    return getattr(parameter, "uses_int8", False)
