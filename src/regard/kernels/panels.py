"""Weights in the order of `native/panels.cpp`, whose products are parts of greater kernels.

The rows of W are cut into panels of 48. A kernel reads a panel from its first number to its last:

    float32    48 biases; the weights of each input
    8 bits     48 biases, scales / 127 and 128 times sums of rows; the weights of each four inputs

d: width of the input   e: width of the output   p: panels
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.kernels.few_rows import has_dot_instructions
from regard.kernels.int8 import INPUT_ZERO, MAX_INT8, round_weight, uses_int8
from regard.kernels.linear import base_parameter
from regard.kernels.prepared import Affine

PANEL, GROUP = 48, 4  # native/panels.cpp has the same numbers


class PanelProduct(NamedTuple):
    """x W' + b; without weights, a product that a kernel does not use."""

    panels: Tensor
    inputs: int = 0
    outputs: int = 0

    @property
    def numbers(self) -> list[int]:
        """Return what C++ reads; the tensor has to live as long."""
        is_int8 = self.panels.dtype is torch.uint8
        return [self.panels.data_ptr(), self.inputs, self.outputs, is_int8]


NO_PRODUCT = PanelProduct(torch.empty(0))


def pack_panels(parts: Sequence[Affine]) -> PanelProduct:
    """Return the joint product of weights with the same input; a missing bias is 0.

    A weight of 8 bits keeps 32 on a processor that does not multiply bytes.
    """
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat(
        [
            part.weight.new_zeros(len(part.weight)) if part.bias is None else part.bias
            for part in parts
        ]
    )
    is_int8 = uses_int8(base_parameter(parts[0].weight)) and has_dot_instructions()
    pack = pack_bytes if is_int8 else pack_floats
    return PanelProduct(pack(weight, bias), weight.shape[1], len(weight))


def pack_floats(weight: Float[Tensor, "e d"], bias: Float[Tensor, " e"]) -> Float[Tensor, "p _ n"]:
    """Return panels of float32."""
    rows = padded_rows(torch.cat([bias[:, None], weight], 1))
    return rows.unflatten(0, (-1, PANEL)).transpose(1, 2).contiguous()


def pack_bytes(weight: Float[Tensor, "e d"], bias: Float[Tensor, " e"]) -> UInt8[Tensor, "p _"]:
    """Return panels of 8 bits."""
    numbers, scales = round_weight(weight)
    numbers = torch.nn.functional.pad(numbers, (0, -numbers.shape[1] % GROUP))
    zeros = numbers.sum(1, dtype=torch.int32) * INPUT_ZERO
    header = torch.stack([bias, scales / MAX_INT8, zeros.view(torch.float32)], 1)
    headers = padded_rows(header).unflatten(0, (-1, PANEL)).transpose(1, 2).contiguous()
    groups = padded_rows(numbers).unflatten(1, (-1, GROUP)).unflatten(0, (-1, PANEL))
    weights = groups.transpose(1, 2).contiguous()
    return torch.cat([part.flatten(1).view(torch.uint8) for part in (headers, weights)], 1)


def padded_rows(x: Tensor) -> Tensor:
    """Add rows of zeros up to a whole number of panels."""
    return torch.nn.functional.pad(x, (0, 0, 0, -len(x) % PANEL))
