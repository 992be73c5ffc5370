"""Dropout: the rate, the scale, the gradient, and the fallback to torch."""

import pytest
import torch
from torch import Tensor

from regard.layers.dropout import dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(999, 101), (100_000,)])
def test_share_scale_and_gradient(rate: float, shape: tuple[int, ...]):
    x = torch.randn(shape, requires_grad=True)
    y = dropout(x, rate)
    is_kept = y != 0
    spread = (rate * (1 - rate) / x.numel()) ** 0.5
    assert 1 - is_kept.double().mean().item() == pytest.approx(rate, abs=5 * spread)
    torch.testing.assert_close(y[is_kept], x[is_kept] / (1 - rate), rtol=2e-4, atol=0)
    y.sum().backward()
    torch.testing.assert_close(x.grad, is_kept / (1 - rate), rtol=2e-4, atol=0)


def test_values_are_dropped_independently():
    """Values are uncorrelated, also neighbors from the same random word."""
    dropped = (dropout(torch.ones(50_000, 8), 0.3) == 0).double()
    covariance = dropped.T.cov()
    assert (covariance - torch.eye(8) * 0.21).abs().max() < 5 * 0.21 / 50_000**0.5


def test_the_scale_fits_the_rounded_rate():
    scale = dropout(torch.ones(100, dtype=torch.float64), 0.00001 + 1 / 65536).max().item()
    assert scale == pytest.approx(65536 / 65534, rel=1e-6)


def test_the_seed_decides():
    def drawn(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return dropout(torch.ones(1000), 0.5)

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_no_dropout_in_evaluation(rate: float):
    x = torch.randn(5)
    assert dropout(x, rate, False) is x
    assert dropout(x, 0.0) is x


def test_a_rate_too_small_for_the_bits_is_torch_s():
    assert (dropout(torch.ones(1000), 1e-6) > 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_dtype_stays(dtype: torch.dtype):
    assert dropout(torch.ones(64, dtype=dtype), 0.5).dtype == dtype
