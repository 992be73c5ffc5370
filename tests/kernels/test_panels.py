"""Products with weights in panels, in float32 and with 8 bits, are those of float64."""

import pytest
import torch
from torch import Tensor, nn

from regard.kernels import compiled
from regard.kernels.few_rows import has_dot_instructions
from regard.kernels.int8 import round_rows, round_weight
from regard.kernels.panels import PANEL, pack_panels
from regard.kernels.prepared import Affine

pytestmark = [
    pytest.mark.skipif(compiled.native is None, reason="regard was built without kernels"),
    pytest.mark.usefixtures("unchecked"),
]
ROWS = [*range(1, 18), 31, 40]


def multiply(parts: list[Affine], x: Tensor) -> Tensor:
    """Return the product, between columns that have to stay as they are."""
    product = pack_panels(parts)
    table, inputs = torch.tensor(product.numbers), product.inputs
    y = torch.full((len(x), product.outputs + 2), 7.0)
    compiled.native.multiply_panels(
        *(table.data_ptr(), x.data_ptr() + 4, inputs + 1, y.data_ptr() + 4, y.shape[1], len(x))
    )
    assert (y[:, [0, -1]] == 7).all()
    return y[:, 1:-1]


@pytest.mark.parametrize("rows", ROWS)
@torch.no_grad()
def test_floats(rows, seed):
    for inputs, outputs in ((1, 1), (33, PANEL - 1), (8, PANEL), (70, 2 * PANEL + 5)):
        x = torch.randn(rows, inputs + 1)
        weights, bias = torch.randn(outputs + 3, inputs), torch.randn(outputs)
        parts = [Affine(weights[:outputs], bias), Affine(weights[outputs:], None)]
        expected = x[:, 1:].double() @ weights.double().t()
        expected[:, :outputs] += bias
        torch.testing.assert_close(multiply(parts, x), expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not has_dot_instructions(), reason="the processor does not multiply bytes")
@pytest.mark.parametrize("rows", ROWS)
@torch.no_grad()
def test_8_bits(rows, seed):
    for inputs, outputs in ((1, 1), (33, PANEL - 1), (8, PANEL), (70, 2 * PANEL + 5)):
        x, weight = torch.randn(rows, inputs + 1), nn.Parameter(torch.randn(outputs, inputs))
        weight.uses_int8 = True
        bias = torch.randn(outputs)
        numbers, largest = round_rows(x[:, 1:])
        rounded, scales = round_weight(weight.detach())
        sums = (numbers.double() - 128) @ rounded.double().t()
        expected = sums * scales.double() * (largest.double() / 127) + bias
        actual = multiply([Affine(weight, bias)], x)
        torch.testing.assert_close(actual, expected.float(), rtol=1e-5, atol=1e-5)
