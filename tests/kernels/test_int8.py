"""Products of 8 bits: close to those of 32 bits, and independent of the other rows."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.kernels import linear as kernels
from regard.kernels.int8 import HAS_INT8, mark_int8, pack_int8
from regard.kernels.linear import Linear, joint_linear

pytestmark = pytest.mark.skipif(not HAS_INT8, reason="torch was built without FBGEMM")


@pytest.mark.parametrize("has_bias", [True, False])
def test_product_is_close(has_bias: bool):
    generator = torch.Generator().manual_seed(1)
    weight, x = (torch.randn(shape, generator=generator) for shape in ((40, 64), (2, 5, 64)))
    bias = torch.randn(40, generator=generator) if has_bias else None
    expected = F.linear(x, weight, bias)
    error = (pack_int8(weight).multiply(x, bias) - expected).abs().mean() / expected.abs().mean()
    assert 0 < error < 0.02


def test_scales_belong_to_rows():
    """A large number in one row of the input or of the weight does not make others coarse."""
    generator = torch.Generator().manual_seed(1)
    weight, x = (torch.randn(shape, generator=generator) for shape in ((8, 64), (3, 64)))
    alone = pack_int8(weight).multiply(x[:1], None)
    large = torch.cat([x[:1], 1e4 * x[1:], torch.zeros(1, 64)])
    beside = pack_int8(torch.cat([weight, 1e4 * weight])).multiply(large, None)
    assert torch.equal(beside[:1, :8], alone)
    assert torch.equal(beside[-1], torch.zeros(16))


def test_only_inference_of_marked_models(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels, "MIN_PACKED_SIZE", 0)
    layer, twin, x = Linear(64, 40), Linear(64, 40), torch.randn(5, 64)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    mark_int8(layer)
    with torch.inference_mode():
        for output in (layer(x), joint_linear(x, (layer, twin))[0]):
            error = (output - F.linear(x, layer.weight, layer.bias)).abs().max()
            assert 1e-6 < error < 0.1
    torch.testing.assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias))
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
