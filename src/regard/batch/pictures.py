"""Pixels into tensors: of one mean and deviation, and in training moved and mirrored.

    x = (pixel / 255 - mean) / std          by channel

b: pictures   c: channels   h, w: pixels
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.corpora.pictures import Picture, Pixels, Reader

BLACK = 0


@dataclass(frozen=True)
class Pictures:
    """How pictures are read, and which numbers they become; one mean for all channels, or each."""

    reader: Reader
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)

    def read(self, picture: Picture, place: str | None = None) -> Pixels:
        return self.reader(picture, place)

    def tensor(self, pixels: Sequence[Pixels]) -> Float[Tensor, "b c h w"]:
        return self.scaled(stacked(pixels))

    def varied(
        self, pixels: Sequence[Pixels], *, crop: int = 0, flip: bool = False
    ) -> Float[Tensor, "b c h w"]:
        """The same, each moved by up to `crop` pixels, and half of them mirrored if `flip`."""
        whole = stacked(pixels)
        if crop:
            whole = cropped(whole, crop)
        return self.scaled(flipped(whole) if flip else whole)

    def scaled(self, whole: UInt8[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        mean, std = (torch.tensor(one)[:, None, None] for one in (self.mean, self.std))
        return whole.float().div_(255).sub_(mean).div_(std)


def stacked(pixels: Sequence[Pixels]) -> UInt8[Tensor, "b c h w"]:
    if not pixels:
        raise ValueError("pictures are missing: a batch has at least one")
    return torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).contiguous()


def cropped(whole: UInt8[Tensor, "b c h w"], by: int) -> UInt8[Tensor, "b c h w"]:
    """Each cut, anywhere, out of itself with so many black pixels around it."""
    height, width = whole.shape[2:]
    wide = F.pad(whole, (by, by, by, by), value=BLACK)
    tops, lefts = torch.randint(0, 2 * by + 1, (2, len(whole), 1))
    rows = (tops + torch.arange(height))[:, None, :, None]
    columns = (lefts + torch.arange(width))[:, None, None, :]
    each: Any = torch.arange(len(whole))[:, None, None, None]
    channels = torch.arange(whole.shape[1])[None, :, None, None]
    return wide[each, channels, rows, columns]


def flipped(whole: UInt8[Tensor, "b c h w"]) -> UInt8[Tensor, "b c h w"]:
    """Half of them, by chance, with left and right exchanged."""
    turned = torch.rand(len(whole)) < 0.5
    return torch.where(turned[:, None, None, None], whole.flip(3), whole)
