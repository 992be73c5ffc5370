"""Images from files or arrays, as 8-bit arrays of one size: [height, width, channels].

An image is a path, or an array [height, width] or [height, width, channels] of 8 or 16 bits. The
result is upright (by its EXIF orientation), blended with white where transparent, and gray or RGB.
"""

import io
import warnings
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.formats.lines import check_file
from regard.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

PixelArray = NDArray[np.generic]  # before it is checked
ImageLike = Path | str | PixelArray
Pixels = NDArray[np.uint8]  # [height width channels]
FitMode = Literal["crop", "pad", "stretch"]

WHITE = 255
SIXTEEN_BIT_SCALE = 257  # 65535 / 255: from 16 bits to 8
PIL_MODES = {1: "L", 3: "RGB"}  # channels -> mode of Pillow
EXIF_ORIENTATION = 0x0112  # tag number
SIDEWAYS_ORIENTATIONS = (5, 6, 7, 8)
MAX_PIXELS = 89_478_485  # a quarter of a gigabyte in three channels; Pillow warns above that
JPEG_DRAFT_FACTOR = 2  # a JPEG is decoded at twice the requested size or more


@dataclass(frozen=True)
class ImageReader:
    """Decodes images: `reader(image)` returns pixels of `size` (height, width).

    With `size` None, images keep their size. `fit` adapts another shape: "crop" takes the center,
    "pad" adds white borders, "stretch" distorts.
    """

    size: tuple[int, int] | None = None
    channels: int = 3
    fit: FitMode = "crop"

    def __post_init__(self) -> None:
        if self.channels not in PIL_MODES:
            raise InputError(f"channels must be 1 (gray) or 3 (RGB), not {self.channels}")
        if self.size is not None and min(self.size) < 1:
            raise InputError(f"size must be positive, not {self.size}")

    def __call__(self, image: ImageLike, location: str | None = None) -> Pixels:
        """Return the pixels of an image; errors name `location`, by default the path."""
        if isinstance(image, Path | str):
            display_location, data = location or str(image), read_image_bytes(image, location)
        else:
            display_location = location or "image"
            data = to_eight_bits(image, display_location)
            if data.shape == (*(self.size or data.shape[:2]), self.channels):
                return data
        return self.decode(data, display_location)

    def decode(self, data: bytes | Pixels, location: str) -> Pixels:
        """Decode the bytes of a file, or convert an 8-bit array."""
        try:
            with warnings.catch_warnings():  # readable files with doubtful metadata
                warnings.simplefilter("ignore")
                image = flatten_image(
                    open_image(data, location, self.size), PIL_MODES[self.channels]
                )
                return self.resize(image)
        except BadImageError:
            raise
        except Exception as error:  # decoders raise any exception on damaged bytes
            raise damaged_image(location, error) from None

    def resize(self, image: "PillowImage") -> Pixels:
        from PIL import Image

        height, width = self.size or (image.height, image.width)
        box = (0.0, 0.0, float(image.width), float(image.height))
        inner_size = (width, height)
        ratios = height / image.height, width / image.width
        if self.fit == "crop":  # crop and scale in one step: a thin image never becomes huge
            scale = max(ratios)  # rounding may cross the border, which Pillow does not allow
            crop_height, crop_width = (
                min(height / scale, image.height),
                min(width / scale, image.width),
            )
            top, left = (image.height - crop_height) / 2, (image.width - crop_width) / 2
            box = (
                left,
                top,
                min(left + crop_width, image.width),
                min(top + crop_height, image.height),
            )
        elif self.fit == "pad":
            scale = min(ratios)
            inner_size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        if (image.width, image.height) != inner_size or box != (0, 0, *inner_size):
            image = image.resize(inner_size, Image.Resampling.BILINEAR, box)
        if inner_size != (width, height):
            background = Image.new(image.mode, (width, height), "white")
            background.paste(image, ((width - inner_size[0]) // 2, (height - inner_size[1]) // 2))
            image = background
        pixels = np.array(image, dtype=np.uint8)
        return pixels if pixels.ndim == 3 else pixels[..., None]


class BadImageError(InputError):
    """Raised for an image that cannot be read."""


def damaged_image(location: str, error: Exception) -> BadImageError:
    """Return an error that gives the reason of a decoder."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return BadImageError(f"{location}: damaged image ({reason}); remove it")


def check_image_header(path: Path | str, location: str) -> None:
    """Raise an error if a file is not an image; its pixels are not decoded."""
    data = read_image_bytes(path, location)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            open_image(data, location)
    except BadImageError:
        raise
    except Exception as error:  # decoders raise any exception on damaged bytes
        raise damaged_image(location, error) from None


def image_size(image: ImageLike) -> tuple[int, int]:
    """Return the displayed height and width; of a file, only the header is read."""
    if not isinstance(image, Path | str):
        return image.shape[0], image.shape[1]
    data = read_image_bytes(image)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened = open_image(data, str(image))
            is_sideways = opened.getexif().get(EXIF_ORIENTATION, 1) in SIDEWAYS_ORIENTATIONS
    except BadImageError:
        raise
    except Exception as error:  # decoders raise any exception on damaged bytes
        raise damaged_image(str(image), error) from None
    return (opened.width, opened.height) if is_sideways else (opened.height, opened.width)


def image_digest(image: ImageLike) -> str:
    """Hash the bytes of a file, or the pixels of an array."""
    if isinstance(image, Path | str):
        data = Path(image).read_bytes()
    else:
        data = repr(image.shape).encode() + np.ascontiguousarray(image).tobytes()
    return blake2b(data, digest_size=16).hexdigest()


def read_image_bytes(path: Path | str, location: str | None = None) -> bytes:
    """Read a file that must exist and not be empty."""
    check_file(path)
    data = Path(path).read_bytes()
    if not data:
        raise BadImageError(f"{location or path}: an empty file, not an image; remove it")
    return data


def open_image(
    data: bytes | Pixels, location: str, size: tuple[int, int] | None = None
) -> "PillowImage":
    """Open an image without decoding it; refuse decompression bombs and other files."""
    from PIL import Image, UnidentifiedImageError

    if not isinstance(data, bytes):
        return Image.fromarray(data[..., 0] if data.shape[-1] == 1 else data)
    bomb_message = (
        f"{location}: more than {MAX_PIXELS:,} pixels (a decompression bomb?); scale it down first"
    )
    try:
        image = Image.open(io.BytesIO(data))
    except Image.DecompressionBombError:
        raise BadImageError(bomb_message) from None
    except UnidentifiedImageError:
        hint = "not an image in a known format; remove it, or convert it to PNG"
        raise BadImageError(f"{location}: {hint}") from None
    if image.width * image.height > MAX_PIXELS:
        raise BadImageError(bomb_message)
    if not image.width * image.height:
        raise BadImageError(f"{location}: an image without pixels; remove it")
    if size is not None:  # a JPEG can be decoded at a half, a quarter or an eighth of its size
        image.draft(None, (JPEG_DRAFT_FACTOR * max(size), JPEG_DRAFT_FACTOR * max(size)))
    return image


def flatten_image(image: "PillowImage", mode: str) -> "PillowImage":
    """Turn the image upright, convert it to 8 bits and this mode, and blend it with white."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # 16-bit integers, or 32-bit integers with 16-bit values
        image = Image.fromarray(to_eight_bits(np.asarray(image), "it")[..., 0])
    elif image.mode == "F":
        raise InputError("floating-point values of unknown range; convert it to 8 bits")
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        background = Image.new("RGBA", rgba.size, "white")
        image = Image.alpha_composite(background, rgba)
    return image if image.mode == mode else image.convert(mode)


def to_eight_bits(array: PixelArray, location: str) -> Pixels:
    """Convert an array of pixels to 8 bits and the shape [height, width, channels]."""
    array = np.asarray(array)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
        expected = "[height, width] or [height, width, 1, 3 or 4]"
        raise BadImageError(f"{location}: an array of shape {array.shape}; give {expected}")
    if array.dtype == np.uint8:
        return array.astype(np.uint8, copy=False)
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * WHITE
    is_integer = array.dtype.kind in "iu"
    if not is_integer or (array.dtype != np.uint16 and not 0 <= array.min() <= array.max() < 2**16):
        raise BadImageError(
            f"{location}: pixels of type {array.dtype}; give integers of 8 or 16 bits"
        )
    return ((array.astype(np.uint32) + SIXTEEN_BIT_SCALE // 2) // SIXTEEN_BIT_SCALE).astype(
        np.uint8
    )
