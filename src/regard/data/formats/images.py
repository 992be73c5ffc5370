"""Images from files or arrays, as 8-bit arrays of one size: [height, width, channels].

An image is a path, or an array [height, width] or [height, width, channels] of 8 or 16 bits. It
comes out upright (by its EXIF note), without alpha (it lies on white), grey or in colours.
"""

import io
import warnings
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.formats.lines import check_file

if TYPE_CHECKING:
    from PIL.Image import Image as Opened

ImageLike = Path | str | NDArray[Any]
Pixels = NDArray[np.uint8]  # [height width channels]
FitMode = Literal["crop", "pad", "stretch"]

WHITE = 255
SIXTEEN_BIT_SCALE = 257  # 65535 / 255: from 16 bits to 8
PIL_MODES = {1: "L", 3: "RGB"}  # channels -> what Pillow calls it
EXIF_ORIENTATION = 0x0112  # where EXIF says how an image is turned
SIDEWAYS_ORIENTATIONS = (5, 6, 7, 8)
MAX_PIXELS = (
    89_478_485  # pixels: a quarter of a gigabyte in three channels; Pillow warns above that
)
JPEG_DRAFT_FACTOR = 2  # a JPEG is decoded at this many times the wanted size, at least


@dataclass(frozen=True)
class ImageReader:
    """`reader(image)` is its pixels, of this size (height, width) or, with None, of its own.

    `fit` says what becomes of another shape: the middle of it is taken ("crop"), it is laid whole
    on white ("pad"), or it is stretched.
    """

    size: tuple[int, int] | None = None
    channels: int = 3
    fit: FitMode = "crop"

    def __post_init__(self) -> None:
        if self.channels not in PIL_MODES:
            raise ValueError(f"channels must be 1 (grey) or 3 (colours), not {self.channels}")
        if self.size is not None and min(self.size) < 1:
            raise ValueError(f"size must be positive, not {self.size}")

    def __call__(self, image: ImageLike, location: str | None = None) -> Pixels:
        """`place` is what messages call it; a path by itself else."""
        if isinstance(image, Path | str):
            display_location, data = location or str(image), read_image_bytes(image, location)
        else:
            display_location = location or "image"
            data = to_eight_bits(image, display_location)
            if data.shape == (*(self.size or data.shape[:2]), self.channels):
                return data
        return self.decode(data, display_location)

    def decode(self, data: bytes | Pixels, location: str) -> Pixels:
        """Of the bytes of a file, or of an array of 8 bits."""
        try:
            with warnings.catch_warnings():  # of doubtful notes in files that can be read
                warnings.simplefilter("ignore")
                image = flatten_image(
                    open_image(data, location, self.size), PIL_MODES[self.channels]
                )
                return self.resize(image)
        except BadImageError:
            raise
        except Exception as error:  # what a decoder makes of damaged bytes can be anything
            reason = " ".join(str(error).split()) or type(error).__name__
            raise BadImageError(f"{location}: damaged image ({reason}); take it out") from None

    def resize(self, image: "Opened") -> Pixels:
        from PIL import Image

        height, width = self.size or (image.height, image.width)
        box = (0.0, 0.0, float(image.width), float(image.height))
        inner_size = (width, height)
        ratios = height / image.height, width / image.width
        if self.fit == "crop":  # cut and made smaller at once: a thin image never becomes huge
            scale = max(ratios)  # rounding may go past the border, which Pillow does not allow
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


class BadImageError(ValueError):
    """An image that cannot be read: its message names it, and says what to do."""


def image_size(image: ImageLike) -> tuple[int, int]:
    """Height and width, of a file by its header alone, as it is shown."""
    if not isinstance(image, Path | str):
        return image.shape[0], image.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = open_image(read_image_bytes(image), str(image))
        is_sideways = opened.getexif().get(EXIF_ORIENTATION, 1) in SIDEWAYS_ORIENTATIONS
    return (opened.width, opened.height) if is_sideways else (opened.height, opened.width)


def image_digest(image: ImageLike) -> str:
    """Of the bytes of a file, or of the pixels of an array: equal images have equal ones."""
    if isinstance(image, Path | str):
        data = Path(image).read_bytes()
    else:
        data = repr(image.shape).encode() + np.ascontiguousarray(image).tobytes()
    return blake2b(data, digest_size=16).hexdigest()


def read_image_bytes(path: Path | str, location: str | None = None) -> bytes:
    """The bytes of a file that is there and not empty."""
    check_file(path)
    data = Path(path).read_bytes()
    if not data:
        raise BadImageError(f"{location or path}: an empty file, no image; take it out")
    return data


def open_image(
    data: bytes | Pixels, location: str, size: tuple[int, int] | None = None
) -> "Opened":
    """What Pillow makes of it, not decoded yet; a bomb and a file that is none are refused."""
    from PIL import Image, UnidentifiedImageError

    if not isinstance(data, bytes):
        return Image.fromarray(data[..., 0] if data.shape[-1] == 1 else data)
    bomb_message = (
        f"{location}: more than {MAX_PIXELS:,} pixels, as a bomb has; make it smaller first"
    )
    try:
        image = Image.open(io.BytesIO(data))
    except Image.DecompressionBombError:
        raise BadImageError(bomb_message) from None
    except UnidentifiedImageError:
        hint = "not an image of a format that is known; take it out, or convert it to PNG"
        raise BadImageError(f"{location}: {hint}") from None
    if image.width * image.height > MAX_PIXELS:
        raise BadImageError(bomb_message)
    if not image.width * image.height:
        raise BadImageError(f"{location}: an image without pixels; take it out")
    if size is not None:  # a JPEG can be decoded at a half, a quarter or an eighth of its size
        image.draft(None, (JPEG_DRAFT_FACTOR * max(size), JPEG_DRAFT_FACTOR * max(size)))
    return image


def flatten_image(image: "Opened", mode: str) -> "Opened":
    """Upright, of 8 bits, on white, and of this mode."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # whole numbers of 16 bits, or of 32 that hold 16
        image = Image.fromarray(to_eight_bits(np.asarray(image), "it")[..., 0])
    elif image.mode == "F":
        raise ValueError("its values are fractions of unknown range: convert it to 8 bits")
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        background = Image.new("RGBA", rgba.size, "white")
        image = Image.alpha_composite(background, rgba)
    return image if image.mode == mode else image.convert(mode)


def to_eight_bits(array: NDArray[Any], location: str) -> Pixels:
    """An array of pixels, as [height, width, channels] of 8 bits."""
    array = np.asarray(array)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
        expected = "[height, width] or [height, width, 1, 3 or 4]"
        raise BadImageError(f"{location}: an array of shape {array.shape}, not {expected}")
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * WHITE
    is_integer = array.dtype.kind in "iu"
    if not is_integer or (array.dtype != np.uint16 and not 0 <= array.min() <= array.max() < 2**16):
        raise BadImageError(
            f"{location}: pixels of {array.dtype}; give whole numbers of 8 or 16 bits"
        )
    return ((array.astype(np.uint32) + SIXTEEN_BIT_SCALE // 2) // SIXTEEN_BIT_SCALE).astype(
        np.uint8
    )
