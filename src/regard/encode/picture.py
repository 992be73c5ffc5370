"""From a picture to a grid of features, and from the grid to slots that can be attended to."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attend.check import check_finite, check_float, check_positive
from regard.attend.memory import slots_of_grid
from regard.encode.cell import check_dtype

Size = int | tuple[int, int]  # height and width, one number for both


class Picture(nn.Module):
    """`layers` times [3x3 convolution, norm, ReLU, 2x2 max pooling], then a linear map to `dim`.

    This is the small network of few-shot learning (Vinyals et al. 2016, 4.1; SNAIL: four layers of
    64); with fewer poolings than layers it keeps a finer grid, for a captioner to look at. Only
    the first `pools` layers halve the picture (None: all). Slots come in reading order, so
    `weights.unflatten(-1, net.grid(height, width))` lays weights over the picture again.
    """

    def __init__(
        self,
        channels: int,
        dim: int,
        *,
        layers: int = 4,
        hidden_dim: int = 64,
        pools: int | None = None,
        norm: Callable[[int], nn.Module] = nn.BatchNorm2d,
    ):
        super().__init__()
        check_positive("channels", channels)
        check_positive("layers", layers)
        self.channels, self.pools = channels, layers if pools is None else pools
        if not 0 <= self.pools <= layers:
            raise ValueError(f"pools must be between 0 and layers ({layers}), not {pools}")
        self.look = nn.Sequential()
        for layer in range(layers):
            wide = channels if layer == 0 else hidden_dim
            # no bias: the norm takes the mean away and has a bias of its own
            self.look.append(nn.Conv2d(wide, hidden_dim, 3, padding=1, bias=False))
            self.look.append(norm(hidden_dim))
            self.look.append(nn.ReLU())
            if layer < self.pools:
                self.look.append(nn.MaxPool2d(2))
        self.out = nn.Linear(hidden_dim, dim)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of slots for a picture of this size."""
        return height >> self.pools, width >> self.pools

    def forward(self, pictures: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k d"]:
        check_pictures(pictures, self.channels, self.out.weight)
        height, width = pictures.shape[2:]
        if 0 in self.grid(height, width):
            least = 2**self.pools
            raise ValueError(
                f"pictures of {height} x {width} pixels are too small: at least {least} x {least}"
            )
        return self.out(slots_of_grid(self.look(pictures)))


def halvings(channels: int, dim: int, by: int) -> nn.Sequential:
    """3x3 convolutions that each halve the picture, until it is smaller `by` so many times.

    Widths double up to `dim`; a 1x1 convolution ends it (Xiao et al. 2021, 2106.14881, sec. 4).
    """
    steps = by.bit_length() - 1
    if by != 2**steps or not steps:
        raise ValueError(f"convolutions halve a picture: patch must be 2, 4, 8, …, not {by}")
    made, wide = nn.Sequential(), channels
    for step in range(steps):
        wider = max(dim >> (steps - 1 - step), 1)
        # no bias: the norm takes the mean away and has a bias of its own
        made.append(nn.Conv2d(wide, wider, 3, 2, padding=1, bias=False))
        made.append(nn.GroupNorm(1, wider))
        made.append(nn.ReLU())
        wide = wider
    return made.append(nn.Conv2d(wide, dim, 1))


def regrid(
    table: Float[Tensor, "t d"], grid: tuple[int, int], other: tuple[int, int]
) -> Float[Tensor, "u d"]:
    """Positions that were learnt for one grid of patches, for another: by cubics.

    Rows of the table before those of the grid (a class token's) stay as they are.
    """
    if grid == other:
        return table
    before = len(table) - grid[0] * grid[1]
    if before < 0:
        raise ValueError(f"table has {len(table)} rows, too few for {grid[0]} x {grid[1]} patches")
    laid = table[before:].T.unflatten(1, grid)[None]
    found = F.interpolate(laid, other, mode="bicubic", align_corners=False)
    return torch.cat([table[:before], slots_of_grid(found)[0]])


def sides(size: Size) -> tuple[int, int]:
    """Height and width."""
    height, width = (size, size) if isinstance(size, int) else size
    check_positive("height", height)
    check_positive("width", width)
    return height, width


def check_pictures(pictures: Tensor, channels: int, weight: Tensor) -> None:
    """Each network that takes pictures says so in the same words."""
    if pictures.ndim != 4 or pictures.shape[1] != channels:
        wanted = f"[batch, {channels}, height, width]"
        raise ValueError(f"pictures must have shape {wanted}, not {tuple(pictures.shape)}")
    check_float("pictures", pictures)
    check_dtype("pictures", pictures, weight)
    check_finite("pictures", pictures)
