"""Image encoders: slots in reading order, and weights in the layout of the image."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.scores import Dot
from regard.layers.images import ImageEncoder

DOUBLE = torch.float64


def one_group(width: int) -> nn.Module:
    return nn.GroupNorm(1, width)


def convolution_by_loop(image: Tensor, weight: Tensor) -> Tensor:
    """Compute a 3x3 convolution with zero padding."""
    rows, columns = image.shape[1:]
    out = torch.zeros(weight.shape[0], rows, columns, dtype=DOUBLE)
    for o in range(weight.shape[0]):
        for r in range(rows):
            for c in range(columns):
                for i in range(3):
                    for j in range(3):
                        y, x = r + i - 1, c + j - 1
                        if 0 <= y < rows and 0 <= x < columns:
                            out[o, r, c] += (weight[o, :, i, j] * image[:, y, x]).sum()
    return out


def max_pooling_by_loop(grid: Tensor) -> Tensor:
    rows, columns = grid.shape[1] // 2, grid.shape[2] // 2
    out = torch.empty(grid.shape[0], rows, columns, dtype=DOUBLE)
    for r in range(rows):
        for c in range(columns):
            out[:, r, c] = grid[:, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2].flatten(1).max(1).values
    return out


def test_encoder_by_loops():
    net = ImageEncoder(2, 5, layers=2, hidden_dim=3, pooling_layers=1).double().eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.running_mean, module.weight, module.bias):
                assert tensor is not None
                nn.init.normal_(tensor)
            assert module.running_var is not None
            nn.init.uniform_(module.running_var, 0.5, 2)
    images = torch.randn(2, 2, 5, 6, dtype=DOUBLE)
    got = net(images)
    for image, slots in zip(images, got, strict=True):
        grid = image
        for layer in range(2):
            convolution = net.look[4 * layer]
            norm = net.look[4 * layer + 1]
            assert isinstance(convolution, nn.Conv2d)
            assert isinstance(norm, nn.BatchNorm2d)
            assert norm.running_mean is not None
            assert norm.running_var is not None
            grid = convolution_by_loop(grid, convolution.weight)
            for o in range(3):
                spread = math.sqrt(norm.running_var[o].item() + norm.eps)
                grid[o] = (grid[o] - norm.running_mean[o]) / spread * norm.weight[o] + norm.bias[o]
            grid = grid.clamp(min=0)
            if layer == 0:
                grid = max_pooling_by_loop(grid)
        for row in range(2):
            for column in range(3):
                expected = net.out.weight @ grid[:, row, column] + net.out.bias
                torch.testing.assert_close(
                    slots[3 * row + column], expected, rtol=1e-10, atol=1e-12
                )


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 3))
def test_grid_is_the_output_shape(height: int, width: int, pools: int):
    net = ImageEncoder(1, 4, layers=3, hidden_dim=2, pooling_layers=pools).eval()
    rows, columns = net.grid(height, width)
    assert (rows, columns) == (height // 2**pools, width // 2**pools)
    if rows and columns:
        assert net(torch.randn(1, 1, height, width)).shape == (1, rows * columns, 4)
    else:
        with pytest.raises(ValueError, match=rf"^images of {height} x {width} pixels are too"):
            net(torch.randn(1, 1, height, width))


def test_snail_encoder_returns_one_vector_for_omniglot():
    net = ImageEncoder(1, 64)
    assert net(torch.randn(2, 1, 28, 28)).shape == (2, 1, 64)
    convolutions = 9 * 64 + 3 * (9 * 64 * 64)
    assert sum(p.numel() for p in net.parameters()) == convolutions + 4 * 2 * 64 + 64 * 64 + 64


@settings(max_examples=20)
@given(st.integers(0, 3), st.integers(0, 5))
def test_weights_have_the_layout_of_the_image(row: int, column: int):
    net = ImageEncoder(3, 8, layers=2, hidden_dim=4, norm=lambda _: nn.Identity())
    for module in net.look:
        if isinstance(module, nn.Conv2d):  # pixels do not mix, so that only one slot changes
            nn.init.zeros_(module.weight)
            nn.init.uniform_(module.weight[:, :, 1, 1], 0.1, 1)
    image = torch.zeros(1, 3, 16, 24)
    image[:, :, 4 * row + 1, 4 * column + 2] = 5.0
    slots, attention = net(image) - net(torch.zeros_like(image)), Attention(Dot())
    weights = attention.weigh(100 * slots.sum(1, keepdim=True), attention.remember(slots))
    folded = weights.unflatten(-1, net.grid(16, 24))
    assert folded.shape == (1, 1, 4, 6)
    assert folded[0, 0, row, column] > 0.99


def test_group_norm_keeps_images_apart_also_in_training():
    net = ImageEncoder(1, 4, layers=2, hidden_dim=4, norm=partial(nn.GroupNorm, 2)).double()
    images = torch.randn(3, 1, 8, 8, dtype=DOUBLE)
    torch.testing.assert_close(net(images)[:1], net(images[:1]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, DOUBLE])
def test_stays_finite_and_keeps_the_dtype(dtype: torch.dtype):
    net = ImageEncoder(1, 4, layers=2, hidden_dim=4).to(dtype)
    images = torch.rand(2, 1, 8, 8, dtype=dtype, requires_grad=True)
    slots = net(images)
    slots.sum().backward()
    assert slots.dtype == dtype
    assert slots.isfinite().all()
    assert images.grad is not None
    assert images.grad.isfinite().all()


def test_gradient():
    net = ImageEncoder(1, 2, layers=2, hidden_dim=2, pooling_layers=1, norm=one_group).double()
    images = torch.randn(1, 1, 4, 4, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(net, (images,))


def test_bad_arguments(unchecked: None):
    encoder = ImageEncoder(3, 4)
    shape = r"\[batch, 3, height, width\]"
    for bad in [(2, 1, 28, 28), (2, 28, 28), (28, 28)]:
        got = ", ".join(map(str, bad))
        with pytest.raises(ValueError, match=rf"^images must have shape {shape}, not \({got}\)$"):
            encoder(torch.zeros(bad))
    with pytest.raises(ValueError, match=r"^images must be floating point, not torch\.uint8$"):
        encoder(torch.zeros(1, 3, 28, 28, dtype=torch.uint8))
    with pytest.raises(ValueError, match=r"^images must be torch\.float32 like the weights"):
        encoder(torch.zeros(1, 3, 28, 28, dtype=DOUBLE))
    with pytest.raises(ValueError, match=r"^images holds NaN, first at \(0, 0, 0, 0\)"):
        encoder(torch.full((1, 3, 28, 28), math.nan))
    with pytest.raises(ValueError, match=r"^images of 28 x 15 .* at least 16 x 16$"):
        encoder(torch.zeros(1, 3, 28, 15))
    with pytest.raises(
        ValueError, match=r"^pooling_layers must be between 0 and layers \(2\), not 3$"
    ):
        ImageEncoder(1, 4, layers=2, pooling_layers=3)
    with pytest.raises(ValueError, match=r"^layers must be positive, not 0$"):
        ImageEncoder(1, 4, layers=0)
    with pytest.raises(ValueError, match=r"^channels must be positive, not 0$"):
        ImageEncoder(0, 4)
