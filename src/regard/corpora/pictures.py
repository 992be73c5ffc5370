"""Pictures from files or arrays, as 8-bit arrays of one size: [height, width, channels].

A picture is a path, or an array [height, width] or [height, width, channels] of 8 or 16 bits. It
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

from regard.corpora.lines import check_file

if TYPE_CHECKING:
    from PIL.Image import Image as Opened

Picture = Path | str | NDArray[Any]
Pixels = NDArray[np.uint8]  # [height width channels]
Fit = Literal["crop", "pad", "stretch"]

WHITE = 255
DEEP = 257  # 65535 / 255: from 16 bits to 8
MODES = {1: "L", 3: "RGB"}  # channels -> what Pillow calls it
ORIENTATION = 0x0112  # where EXIF says how a picture is turned
SIDEWAYS = (5, 6, 7, 8)
MOST = 89_478_485  # pixels: a quarter of a gigabyte in three channels; Pillow warns above that
FINER = 2  # a JPEG is decoded at this many times the wanted size, at least


@dataclass(frozen=True)
class Reader:
    """`reader(picture)` is its pixels, of this size (height, width) or, with None, of its own.

    `fit` says what becomes of another shape: the middle of it is taken ("crop"), it is laid whole
    on white ("pad"), or it is stretched.
    """

    size: tuple[int, int] | None = None
    channels: int = 3
    fit: Fit = "crop"

    def __post_init__(self) -> None:
        if self.channels not in MODES:
            raise ValueError(f"channels must be 1 (grey) or 3 (colours), not {self.channels}")
        if self.size is not None and min(self.size) < 1:
            raise ValueError(f"size must be positive, not {self.size}")

    def __call__(self, picture: Picture, place: str | None = None) -> Pixels:
        """`place` is what messages call it; a path by itself else."""
        if isinstance(picture, Path | str):
            where, held = place or str(picture), contents(picture, place)
        else:
            where = place or "picture"
            held = eight_bits(picture, where)
            if held.shape == (*(self.size or held.shape[:2]), self.channels):
                return held
        return self.decoded(held, where)

    def decoded(self, held: bytes | Pixels, where: str) -> Pixels:
        """Of the bytes of a file, or of an array of 8 bits."""
        try:
            with warnings.catch_warnings():  # of doubtful notes in files that can be read
                warnings.simplefilter("ignore")
                image = flat(opened(held, where, self.size), MODES[self.channels])
                return self.fitted(image)
        except BadPictureError:
            raise
        except Exception as error:  # what a decoder makes of damaged bytes can be anything
            reason = " ".join(str(error).split()) or type(error).__name__
            raise BadPictureError(f"{where}: damaged picture ({reason}); take it out") from None

    def fitted(self, image: "Opened") -> Pixels:
        from PIL import Image

        height, width = self.size or (image.height, image.width)
        box = (0.0, 0.0, float(image.width), float(image.height))
        inner = (width, height)
        ratios = height / image.height, width / image.width
        if self.fit == "crop":  # cut and made smaller at once: a thin picture never becomes huge
            scale = max(ratios)  # rounding may go past the border, which Pillow does not allow
            tall, wide = min(height / scale, image.height), min(width / scale, image.width)
            top, left = (image.height - tall) / 2, (image.width - wide) / 2
            box = (left, top, min(left + wide, image.width), min(top + tall, image.height))
        elif self.fit == "pad":
            scale = min(ratios)
            inner = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        if (image.width, image.height) != inner or box != (0, 0, *inner):
            image = image.resize(inner, Image.Resampling.BILINEAR, box)
        if inner != (width, height):
            ground = Image.new(image.mode, (width, height), "white")
            ground.paste(image, ((width - inner[0]) // 2, (height - inner[1]) // 2))
            image = ground
        pixels = np.array(image, dtype=np.uint8)
        return pixels if pixels.ndim == 3 else pixels[..., None]


class BadPictureError(ValueError):
    """A picture that cannot be read: its message names it, and says what to do."""


def size_of(picture: Picture) -> tuple[int, int]:
    """Height and width, of a file by its header alone, as it is shown."""
    if not isinstance(picture, Path | str):
        return picture.shape[0], picture.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = opened(contents(picture), str(picture))
        sideways = image.getexif().get(ORIENTATION, 1) in SIDEWAYS
    return (image.width, image.height) if sideways else (image.height, image.width)


def digest_of(picture: Picture) -> str:
    """Of the bytes of a file, or of the pixels of an array: equal pictures have equal ones."""
    if isinstance(picture, Path | str):
        data = Path(picture).read_bytes()
    else:
        data = repr(picture.shape).encode() + np.ascontiguousarray(picture).tobytes()
    return blake2b(data, digest_size=16).hexdigest()


def contents(path: Path | str, place: str | None = None) -> bytes:
    """The bytes of a file that is there and not empty."""
    check_file(path)
    data = Path(path).read_bytes()
    if not data:
        raise BadPictureError(f"{place or path}: an empty file, no picture; take it out")
    return data


def opened(held: bytes | Pixels, place: str, size: tuple[int, int] | None = None) -> "Opened":
    """What Pillow makes of it, not decoded yet; a bomb and a file that is none are refused."""
    from PIL import Image, UnidentifiedImageError

    if not isinstance(held, bytes):
        return Image.fromarray(held[..., 0] if held.shape[-1] == 1 else held)
    bomb = f"{place}: more than {MOST:,} pixels, as a bomb has; make it smaller first"
    try:
        image = Image.open(io.BytesIO(held))
    except Image.DecompressionBombError:
        raise BadPictureError(bomb) from None
    except UnidentifiedImageError:
        hint = "not a picture of a format that is known; take it out, or convert it to PNG"
        raise BadPictureError(f"{place}: {hint}") from None
    if image.width * image.height > MOST:
        raise BadPictureError(bomb)
    if not image.width * image.height:
        raise BadPictureError(f"{place}: a picture without pixels; take it out")
    if size is not None:  # a JPEG can be decoded at a half, a quarter or an eighth of its size
        image.draft(None, (FINER * max(size), FINER * max(size)))
    return image


def flat(image: "Opened", mode: str) -> "Opened":
    """Upright, of 8 bits, on white, and of this mode."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # whole numbers of 16 bits, or of 32 that hold 16
        image = Image.fromarray(eight_bits(np.asarray(image), "it")[..., 0])
    elif image.mode == "F":
        raise ValueError("its values are fractions of unknown range: convert it to 8 bits")
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        ground = Image.new("RGBA", clear.size, "white")
        image = Image.alpha_composite(ground, clear)
    return image if image.mode == mode else image.convert(mode)


def eight_bits(array: NDArray[Any], place: str) -> Pixels:
    """An array of pixels, as [height, width, channels] of 8 bits."""
    array = np.asarray(array)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
        wanted = "[height, width] or [height, width, 1, 3 or 4]"
        raise BadPictureError(f"{place}: an array of shape {array.shape}, not {wanted}")
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * WHITE
    whole = array.dtype.kind in "iu"
    if not whole or (array.dtype != np.uint16 and not 0 <= array.min() <= array.max() < 2**16):
        raise BadPictureError(
            f"{place}: pixels of {array.dtype}; give whole numbers of 8 or 16 bits"
        )
    return ((array.astype(np.uint32) + DEEP // 2) // DEEP).astype(np.uint8)
