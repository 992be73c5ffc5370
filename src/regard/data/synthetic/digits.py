"""Images of digits in the cells of a grid, with a caption that names each digit and its cell.

    {"image": [h w 1], "caption": "3 top left , 7 bottom right",
     "boxes": ((0, (0, 0, 24, 24)), (4, (24, 24, 48, 48)))}

Captions name the cells in reading order; some cells are empty. A box is the index of a word in
the caption and its cell (top, left, bottom, right, in pixels): where a model should attend while
it generates the word. Digits, cells, sizes, offsets and brightness are drawn independently.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.corpus import Record
from regard.data.formats.images import Pixels
from regard.data.synthetic.base import SyntheticCorpus
from regard.data.synthetic.planted import random_between, text_split
from regard.data.synthetic.reorder import random_below, shuffled
from regard.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

Plane = NDArray[np.float64]  # from 0 to 1
ROW_NAMES = {2: ("top", "bottom"), 3: ("top", "middle", "bottom")}
COLUMN_NAMES = {2: ("left", "right"), 3: ("left", "centre", "right")}
MIN_CELL_PIXELS = 8  # on a side: smaller digits are illegible
WORDS_PER_DIGIT = 4  # in a caption: the digit, its row, its column, a comma
BACKGROUND_LEVEL = 40


class HandwrittenDigits(Protocol):
    """The fields of `sklearn.datasets.load_digits()` that are used here."""

    images: Plane
    """[n 8 8], from 0 to 16."""
    target: NDArray[np.int64]


class Digits(SyntheticCorpus):
    """A corpus of `size` training images and `held_out` each in dev and test.

    Images are gray, of `side` x `side` pixels, divided into `rows` x `columns` cells of which
    `min_digits` to `max_digits` contain a digit. An image depends on the settings and its index
    alone. A caption of two or more digits occurs in one split only.
    """

    def __init__(
        self,
        size: int = 8000,
        *,
        seed: int = 0,
        held_out: int = 500,
        rows: int = 2,
        columns: int = 2,
        min_digits: int = 1,
        max_digits: int = 4,
        side: int = 48,
        noise: int = 24,
        digit_source: Literal["font", "scikit-learn"] = "font",
    ) -> None:
        super().__init__(size, seed, held_out)
        for name, value in {"rows": rows, "columns": columns}.items():
            if value not in (2, 3):
                raise InputError(f"{name} must be 2 or 3, not {value}")
        if not 1 <= min_digits <= max_digits <= rows * columns:
            cells = f"there are {rows * columns} cells"
            raise InputError(
                f"digits must be 1 <= min_digits ({min_digits}) <= max_digits ({max_digits}); "
                f"{cells}"
            )
        if side % rows or side % columns or side // max(rows, columns) < MIN_CELL_PIXELS:
            expected = (
                f"a multiple of {rows} and {columns}, with at least {MIN_CELL_PIXELS} pixels a cell"
            )
            raise InputError(f"side must be {expected}, not {side}")
        if not 0 <= noise <= 100:
            raise InputError(f"noise must be from 0 to 100, not {noise}")
        self.rows, self.columns, self.min_digits, self.max_digits = (
            rows,
            columns,
            min_digits,
            max_digits,
        )
        self.side, self.noise = side, noise
        self.draw_digit: Callable[[int, int, Random], Plane] = (
            draw_printed_digit if digit_source == "font" else draw_handwritten_digit
        )

    def example(self, split: str, index: int) -> Record:
        """Return image `index` of a split, without drawing those before it."""
        rng = Random(f"regard digits {self.seed} {split} {index}")
        # The count is drawn once, so that its distribution is the same in all splits.
        count = random_between(rng, self.min_digits, self.max_digits)
        plan = self.draw_plan(count, rng)
        # Captions of one digit are too few to divide: all splits share them.
        while count > 1 and text_split(repr(plan)) != split:
            plan = self.draw_plan(count, rng)
        return self.draw_record(plan, rng)

    def draw_plan(self, count: int, rng: Random) -> list[tuple[int, int]]:
        """Draw cells and their digits, in reading order."""
        cells = shuffled(list(range(self.rows * self.columns)), rng)[:count]
        return [(cell, random_below(rng, 10)) for cell in sorted(cells)]

    def draw_record(self, plan: Sequence[tuple[int, int]], rng: Random) -> Record:
        height, width = self.side // self.rows, self.side // self.columns
        coverage, boxes, phrases = np.zeros((self.side, self.side)), [], list[str]()
        for number, (cell, digit) in enumerate(plan):
            row, column = divmod(cell, self.columns)
            top, left = row * height, column * width
            cell_size = min(height, width)
            glyph = self.draw_digit(
                digit, random_between(rng, cell_size * 5 // 8, cell_size - 1), rng
            )
            glyph_height, glyph_width = glyph.shape
            row_offset, column_offset = (
                random_below(rng, height - glyph_height + 1),
                random_below(rng, width - glyph_width + 1),
            )
            brightness = random_between(rng, 70, 100) / 100
            coverage[top + row_offset :, left + column_offset :][:glyph_height, :glyph_width] = (
                glyph * brightness
            )
            boxes.append((number * WORDS_PER_DIGIT, (top, left, top + height, left + width)))
            phrases.append(
                f"{digit} {ROW_NAMES[self.rows][row]} {COLUMN_NAMES[self.columns][column]}"
            )
        noise = np.frombuffer(rng.randbytes(self.side**2), np.uint8).astype(np.float64)
        background = (
            BACKGROUND_LEVEL + (noise.reshape(self.side, self.side) / 255 - 0.5) * 2 * self.noise
        )
        blended = background + coverage * (255 - background)
        pixels: Pixels = np.clip(blended, 0, 255).round().astype(np.uint8)[..., None]
        return {"image": pixels, "caption": " , ".join(phrases), "boxes": tuple(boxes)}

    def describe(self) -> str:
        return (
            f"digits: {self.size:,} images of {self.side} x {self.side} pixels, "
            f"{self.min_digits} to "
            f"{self.max_digits} digits in {self.rows} x {self.columns} cells; synthetic"
        )


def draw_printed_digit(digit: int, size: int, rng: Random) -> Plane:
    """Draw a digit in Pillow's default font, `size` pixels high, rotated by up to 12 degrees."""
    return render_digit(digit, size, 3 * random_between(rng, -4, 4))


@cache  # a few hundred small images; rendering takes most of the time of a record
def render_digit(digit: int, size: int, degrees: int) -> Plane:
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(48)
    image = Image.new("L", (64, 64))
    ImageDraw.Draw(image).text((32, 32), str(digit), 255, font, anchor="mm")
    rotated = image.rotate(degrees, Image.Resampling.BILINEAR)
    return scaled(rotated.crop(rotated.getbbox()), size)


def draw_handwritten_digit(digit: int, size: int, rng: Random) -> Plane:
    """Draw one of the handwritten digits of scikit-learn."""
    from PIL import Image

    images = handwritten_digits()[digit]
    image = Image.fromarray(images[random_below(rng, len(images))])
    return scaled(image.crop(image.getbbox()), size)


@cache
def handwritten_digits() -> dict[int, list[Pixels]]:
    try:
        dataset: HandwrittenDigits = import_module("sklearn.datasets").load_digits()
    except ImportError:
        raise InputError(
            "digit_source = 'scikit-learn' needs that package: "
            "pip install scikit-learn, or set 'font'"
        ) from None
    images = (dataset.images * 255 / 16).astype(np.uint8)
    return {n: list(images[dataset.target == n]) for n in range(10)}


def scaled(image: "PillowImage", size: int) -> Plane:
    """Scale the longer side to `size` pixels and the values to 0 to 1."""
    from PIL import Image

    ratio = size / max(image.size)
    shape = (max(1, round(image.width * ratio)), max(1, round(image.height * ratio)))
    return np.asarray(image.resize(shape, Image.Resampling.BILINEAR), np.float64) / 255
