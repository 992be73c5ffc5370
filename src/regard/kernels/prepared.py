"""x W' + b with everything that does not depend on x prepared once, for many small products.

n: rows   d: width of the input   e: width of the output
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.int8 import Int8Weight
from regard.kernels.linear import (
    MIN_PACKED_SIZE,
    base_parameter,
    can_use_onednn,
    packed_joint_weight,
    packed_weight,
)


class OutputFunction(NamedTuple):
    """A function of the output, and its name and variant in oneDNN, which computes it on the way.

    Without a name, the function is called on the output.
    """

    function: Callable[[Tensor], Tensor]
    name: str = "none"
    variant: str = ""


class Affine(NamedTuple):
    """A weight, or rows or columns of one, and a bias: what a layer of torch has too."""

    weight: Float[Tensor, "e d"]
    bias: Float[Tensor, " e"] | None


class PreparedLinear:
    """f(x W' + b) in inference; `layers` with the same input have one joint output.

    Either all of them have a bias, or none.

    It is valid until the weights change.
    """

    def __init__(self, layers: Sequence[nn.Linear | Affine], output: OutputFunction | None = None):
        self.weights = [layer.weight for layer in layers]
        all_biases: list[Tensor | None] = [layer.bias for layer in layers]
        biases = [bias for bias in all_biases if bias is not None]
        self.bias = torch.cat(biases) if len(biases) > 1 else biases[0] if biases else None
        self.function, self.name, self.variant = output or (None, "none", "")
        self.size = sum(weight.numel() for weight in self.weights)
        self.rows, self.packed = 0, None  # the packed weight for this number of rows

    def __call__(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        if len(x) != self.rows:
            self.rows, self.packed = len(x), self.find_packed(x)
        if isinstance(self.packed, Tensor):
            y = torch.ops.mkldnn._linear_pointwise.default(
                x, self.packed, self.bias, self.name, [], self.variant
            )
            if self.name != "none":
                return y
        elif self.packed is None:
            y = self.multiply_plain(x)
        else:
            is_relu = self.name == "relu"
            y = self.packed.multiply(x, self.bias, is_relu=is_relu)
            if is_relu:
                return y
        return y if self.function is None else self.function(y)

    def multiply_plain(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        if len(self.weights) == 1:
            return F.linear(x, self.weights[0], self.bias)
        y = torch.cat([F.linear(x, weight) for weight in self.weights], -1)
        return y if self.bias is None else y.add_(self.bias)

    def find_packed(self, x: Tensor) -> Tensor | Int8Weight | None:
        """Return the packed weight; None if the product is too small for it to be faster."""
        if len(x) * self.size < MIN_PACKED_SIZE or not can_use_onednn(x, self.weights[0]):
            return None
        if len(self.weights) > 1:
            return packed_joint_weight(self.weights)
        return packed_weight(self.weights[0], base_parameter(self.weights[0]))
