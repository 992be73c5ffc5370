"""Pixels into tensors: of one mean and deviation, and in training moved and mirrored.

    x = (pixel / 255 - mean) / std          by channel

b: images   c: channels   h, w: pixels
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.data.formats.images import ImageLike, ImageReader, Pixels
from regard.errors import InputError

BLACK = 0


@dataclass(frozen=True)
class ImagePreprocessor:
    """Conversion of images to numbers; one mean for all channels, or each."""

    reader: ImageReader
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)

    def read(self, image: ImageLike, location: str | None = None) -> Pixels:
        return self.reader(image, location)

    def to_tensor(self, pixels: Sequence[Pixels]) -> Float[Tensor, "b c h w"]:
        return self.normalized(stacked(pixels))

    def augmented(
        self, pixels: Sequence[Pixels], *, crop: int = 0, flip: bool = False
    ) -> Float[Tensor, "b c h w"]:
        """Move each image by up to `crop` pixels, and mirror half of them if `flip`."""
        images = stacked(pixels)
        if crop:
            images = randomly_cropped(images, crop)
        return self.normalized(randomly_flipped(images) if flip else images)

    def normalized(self, images: UInt8[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        mean, std = (torch.tensor(values)[:, None, None] for values in (self.mean, self.std))
        return images.float().div_(255).sub_(mean).div_(std)


def stacked(pixels: Sequence[Pixels]) -> UInt8[Tensor, "b c h w"]:
    if not pixels:
        raise InputError("images are missing: a batch has at least one")
    return torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).contiguous()


def randomly_cropped(images: UInt8[Tensor, "b c h w"], max_shift: int) -> UInt8[Tensor, "b c h w"]:
    """Each cut, anywhere, out of itself with so many black pixels around it."""
    height, width = images.shape[2:]
    padded_images = F.pad(images, (max_shift, max_shift, max_shift, max_shift), value=BLACK)
    tops, lefts = torch.randint(0, 2 * max_shift + 1, (2, len(images), 1))
    rows = (tops + torch.arange(height))[:, None, :, None]
    columns = (lefts + torch.arange(width))[:, None, None, :]
    batch_index: Any = torch.arange(len(images))[:, None, None, None]
    channels = torch.arange(images.shape[1])[None, :, None, None]
    return padded_images[batch_index, channels, rows, columns]


def randomly_flipped(images: UInt8[Tensor, "b c h w"]) -> UInt8[Tensor, "b c h w"]:
    """Half of them, by chance, with left and right exchanged."""
    is_flipped = torch.rand(len(images)) < 0.5
    return torch.where(is_flipped[:, None, None, None], images.flip(3), images)
