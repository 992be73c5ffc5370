"""A step of a stack of transformer blocks with few rows, as one call of `native/few_rows.cpp`.

With few rows, a product takes as long as reading its weights, and the calls from Python between the
products count. This one call does not hold Python's lock, so replicas do not wait for each other.
The threads of torch share the outputs of a product.
A table holds the addresses of all weights, in the order of `StepStack` in `native/kernels.h`.

n: rows   d: width of the input   e: width of the output
"""

from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int8, Int32
from torch import Tensor

from regard.kernels.compiled import can_use_native, native
from regard.kernels.int8 import round_weight, uses_int8
from regard.kernels.linear import base_parameter, find_or_make
from regard.kernels.prepared import PreparedLinear
from regard.kernels.steps import Norm

# With more rows, products by oneDNN gain more than the calls between them cost.
MAX_INT8_ROWS, MAX_FLOAT_ROWS = 8, 2
OUTPUTS = 4  # the kernel computes so many numbers of a row at once
ACTIVATIONS = (("relu", ""), ("swish", ""), ("gelu", "tanh"))  # names and variants, in C++'s order
FLOAT_BYTES = 4


class Int8Rows(NamedTuple):
    """A weight of 8 bits in its own order, with the scale and the sum of each row."""

    numbers: Int8[Tensor, "e d"]
    scales: Float[Tensor, " e"]
    sums: Int32[Tensor, " e"]


def int8_rows(weight: Float[Tensor, "e d"]) -> Int8Rows:
    """Round a weight to 8 bits; the result is kept with its parameter."""

    def make() -> Int8Rows:
        numbers, scales = round_weight(weight.detach())
        return Int8Rows(numbers, scales, numbers.sum(1, dtype=torch.int32))

    key = Int8Rows, weight.storage_offset(), weight.shape
    return find_or_make(key, [base_parameter(weight)], make)


@cache
def has_dot_instructions() -> bool:
    """Return whether the processor multiplies bytes (AVX-512 VNNI)."""
    answer = torch.zeros(1, dtype=torch.long)
    if native is not None:
        native.has_dot_instructions(answer.data_ptr())
    return bool(answer)


class UnsupportedError(Exception):
    """A stack that the kernel does not know."""


class StepTable:
    """Addresses of weights, and the tensors that they belong to."""

    def __init__(self) -> None:
        self.numbers, self.tensors = list[int](), list[Tensor]()
        self.max_rows = MAX_INT8_ROWS if has_dot_instructions() else 0

    def add_products(self, linear: PreparedLinear) -> None:
        """Add x W' + b for each of the weights."""
        first = 0
        for weight in linear.weights:
            outputs, inputs = weight.shape
            if outputs % OUTPUTS:
                raise UnsupportedError
            bias = 0 if linear.bias is None else self.address(linear.bias) + FLOAT_BYTES * first
            self.numbers += [*self.weight_numbers(weight, bias), inputs, outputs]
            first += outputs

    def weight_numbers(self, weight: Float[Tensor, "e d"], bias: int) -> list[int]:
        """Return the addresses of a weight and its bias, scales and sums."""
        if not uses_int8(base_parameter(weight)):
            if not can_use_native(weight):
                raise UnsupportedError
            self.max_rows = MAX_FLOAT_ROWS
            return [self.address(weight), bias, 0, 0]
        if not has_dot_instructions():
            raise UnsupportedError
        rows = int8_rows(weight)
        return [
            self.address(rows.numbers),
            bias,
            self.address(rows.scales),
            self.address(rows.sums),
        ]

    def skip_products(self, count: int) -> None:
        self.numbers += [0] * (6 * count)

    def add_norm(self, norm: Norm | None) -> None:
        gain, shift = (None, None) if norm is None else (norm.weight, norm.bias)
        self.numbers += [0 if part is None else self.address(part) for part in (gain, shift)]

    def address(self, tensor: Tensor) -> int:
        """Return the address of a tensor, which the table keeps alive."""
        self.tensors.append(tensor)
        return tensor.data_ptr()
