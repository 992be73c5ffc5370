"""The kernels in C++ compute what operations of torch compute."""

import shutil

import pytest
import torch

from regard.kernels import compiled, int8

needs_kernels = pytest.mark.skipif(compiled.native is None, reason="regard was built without them")


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler")
def test_an_installation_with_a_compiler_has_kernels():
    """Without this test, all others could be skipped unseen."""
    assert compiled.native is not None


@needs_kernels
@pytest.mark.parametrize("width", [1, 7, 16, 513])
def test_rounding_to_8_bits_is_that_of_torch(width, seed, monkeypatch):
    x = torch.randn(5, width) * torch.tensor([1e-3, 1.0, 50.0, 0.0, 1e30])[:, None]
    x[1] = torch.arange(width) - width / 2  # many halves
    numbers, scale = int8.round_rows(x)
    monkeypatch.setattr(int8, "native", None)
    expected_numbers, expected_scale = int8.round_rows(x)
    assert torch.equal(numbers, expected_numbers)
    assert torch.equal(scale, expected_scale)
