"""Shared parts of the views of tasks on images."""

import io

import numpy as np

from regard.batching.images import ImagePreprocessor
from regard.data.formats.images import Pixels
from regard.tasks.base import InputField
from regard.view.grid import RgbColor


def image_field(images: ImagePreprocessor) -> InputField:
    """Return the field of an image, with the size that the model reads."""
    size = images.reader.size
    shape = None if size is None else (*size, images.reader.channels)
    return InputField("image", "Image", "image", size=shape)


def patch_colors(pixels: Pixels, grid: tuple[int, ...]) -> list[list[RgbColor]]:
    """Return the mean color of each patch; the grid must divide the image."""
    rows, columns = grid
    patches = pixels.reshape(rows, pixels.shape[0] // rows, columns, pixels.shape[1] // columns, -1)
    means = np.broadcast_to(patches.mean((1, 3)), (rows, columns, 3))
    return [[(color[0], color[1], color[2]) for color in row] for row in means.tolist()]


def png_bytes(pixels: Pixels) -> bytes:
    """Return an image as the content of a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(buffer, "PNG")
    return buffer.getvalue()
