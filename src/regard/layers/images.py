"""Image encoders: pixels to a grid of features, and the grid to slots of a memory."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.memory import grid_to_slots
from regard.attention.validation import check_finite, check_float, check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.cells import check_dtype

ImageSize = int | tuple[int, int]  # height and width, or one number for a square


class ImageEncoder(nn.Module):
    """`layers` times [3x3 convolution, norm, ReLU, 2x2 max pooling], then a linear map to `dim`.

    This is the small network of few-shot learning (Vinyals et al. 2016, 4.1; SNAIL: four layers of
    64). Only the first `pooling_layers` layers halve the image (None: all); fewer poolings keep a
    finer grid, as a captioner needs. Slots are in reading order, so
    `weights.unflatten(-1, encoder.grid(height, width))` has the layout of the image.
    """

    def __init__(
        self,
        channels: int,
        dim: int,
        *,
        layers: int = 4,
        hidden_dim: int = 64,
        pooling_layers: int | None = None,
        norm: Callable[[int], nn.Module] = nn.BatchNorm2d,
    ):
        super().__init__()
        check_positive("channels", channels)
        check_positive("layers", layers)
        self.channels, self.pooling_layers = (
            channels,
            layers if pooling_layers is None else pooling_layers,
        )
        if not 0 <= self.pooling_layers <= layers:
            raise InputError(
                f"pooling_layers must be between 0 and layers ({layers}), not {pooling_layers}"
            )
        self.look = nn.Sequential()
        for layer in range(layers):
            in_channels = channels if layer == 0 else hidden_dim
            # no bias: the norm subtracts the mean and has its own bias
            self.look.append(nn.Conv2d(in_channels, hidden_dim, 3, padding=1, bias=False))
            self.look.append(norm(hidden_dim))
            self.look.append(nn.ReLU())
            if layer < self.pooling_layers:
                self.look.append(nn.MaxPool2d(2))
        self.out = Linear(hidden_dim, dim)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of slots for an image of this size."""
        return height >> self.pooling_layers, width >> self.pooling_layers

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k d"]:
        check_images(images, self.channels, self.out.weight)
        height, width = images.shape[2:]
        if 0 in self.grid(height, width):
            min_side = 2**self.pooling_layers
            raise InputError(
                f"images of {height} x {width} pixels are too small; "
                f"they need at least {min_side} x {min_side}"
            )
        return self.out(grid_to_slots(self.look(images)))


def build_convolutional_stem(channels: int, dim: int, factor: int) -> nn.Sequential:
    """Build 3x3 convolutions that each halve the image, until it is smaller by `factor`.

    Widths double up to `dim`. The last layer is a 1x1 convolution (Xiao et al. 2021, 2106.14881,
    sec. 4).
    """
    steps = factor.bit_length() - 1
    if factor != 2**steps or not steps:
        raise InputError(f"patch_size must be 2, 4, 8, … for a convolutional stem, not {factor}")
    stem, in_channels = nn.Sequential(), channels
    for step in range(steps):
        out_channels = max(dim >> (steps - 1 - step), 1)
        # no bias: the norm subtracts the mean and has its own bias
        stem.append(nn.Conv2d(in_channels, out_channels, 3, 2, padding=1, bias=False))
        stem.append(nn.GroupNorm(1, out_channels))
        stem.append(nn.ReLU())
        in_channels = out_channels
    return stem.append(nn.Conv2d(in_channels, dim, 1))


def resize_position_table(
    table: Float[Tensor, "t d"], grid: tuple[int, int], new_grid: tuple[int, int]
) -> Float[Tensor, "u d"]:
    """Resize positions learned for one grid of patches to another grid, by bicubic interpolation.

    Rows of the table before the grid (of a class token) do not change.
    """
    if grid == new_grid:
        return table
    n_extra_rows = len(table) - grid[0] * grid[1]
    if n_extra_rows < 0:
        raise InputError(f"table has {len(table)} rows, too few for {grid[0]} x {grid[1]} patches")
    position_grid = table[n_extra_rows:].T.unflatten(1, grid)[None]
    resized = F.interpolate(position_grid, new_grid, mode="bicubic", align_corners=False)
    return torch.cat([table[:n_extra_rows], grid_to_slots(resized)[0]])


def height_and_width(size: ImageSize) -> tuple[int, int]:
    """Return height and width of a size, which one number gives for a square."""
    height, width = (size, size) if isinstance(size, int) else size
    check_positive("height", height)
    check_positive("width", width)
    return height, width


def check_images(images: Tensor, channels: int, weight: Tensor) -> None:
    """Check shape, dtype and values of a batch of images."""
    if images.ndim != 4 or images.shape[1] != channels:
        expected_shape = f"[batch, {channels}, height, width]"
        raise InputError(f"images must have shape {expected_shape}, not {tuple(images.shape)}")
    check_float("images", images)
    check_dtype("images", images, weight)
    check_finite("images", images)
