"""Pictures of digits in the cells of a grid, and a caption that says which is where.

    {"picture": [h w 1], "caption": "3 top left , 7 bottom right",
     "boxes": ((0, (0, 0, 24, 24)), (4, (24, 24, 48, 48)))}

Cells come in reading order; some are empty. A box is the cell (top, left, bottom, right, in pixels)
that a word of the caption (by its number, from 0) is of: where a model that says it should look.
Digits, cells, sizes, places in the cell and brightness are drawn by themselves.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.corpora.corpus import Record
from regard.corpora.made import Made
from regard.corpora.pictures import Pixels
from regard.corpora.planted import between, split_of
from regard.corpora.reorder import below, shuffled

if TYPE_CHECKING:
    from PIL.Image import Image as Opened

Plane = NDArray[np.float64]  # from 0 to 1
ROWS = {2: ("top", "bottom"), 3: ("top", "middle", "bottom")}
COLUMNS = {2: ("left", "right"), 3: ("left", "centre", "right")}
LEAST = 8  # pixels of a cell: in less, digits cannot be told apart
WORDS = 4  # of a digit in a caption: itself, its row, its column, a comma
DARK = 40


class Digits(Made):
    """A corpus of `size` pictures to train on and `held_out` each in dev and test.

    They are grey, `side` x `side` pixels, cut into `rows` x `columns` cells of which `fewest` to
    `most` hold a digit. The n-th picture of a split depends on the settings and n alone. Captions
    of two digits and more are each in one split only.
    """

    def __init__(
        self,
        size: int = 8000,
        *,
        seed: int = 0,
        held_out: int = 500,
        rows: int = 2,
        columns: int = 2,
        fewest: int = 1,
        most: int = 4,
        side: int = 48,
        noise: int = 24,
        drawn: Literal["font", "scikit-learn"] = "font",
    ) -> None:
        super().__init__(size, seed, held_out)
        for name, number in {"rows": rows, "columns": columns}.items():
            if number not in (2, 3):
                raise ValueError(f"{name} must be 2 or 3, not {number}")
        if not 1 <= fewest <= most <= rows * columns:
            cells = f"there are {rows * columns} cells"
            raise ValueError(f"digits must be 1 <= fewest ({fewest}) <= most ({most}); {cells}")
        if side % rows or side % columns or side // max(rows, columns) < LEAST:
            wanted = f"a multiple of {rows} and {columns}, with {LEAST} pixels a cell at least"
            raise ValueError(f"side must be {wanted}, not {side}")
        if not 0 <= noise <= 100:
            raise ValueError(f"noise must be from 0 to 100, not {noise}")
        self.rows, self.columns, self.fewest, self.most = rows, columns, fewest, most
        self.side, self.noise = side, noise
        self.write: Callable[[int, int, Random], Plane] = printed if drawn == "font" else written

    def example(self, split: str, number: int) -> Record:
        """The n-th picture, without those before it."""
        chance = Random(f"regard digits {self.seed} {split} {number}")
        count = between(chance, self.fewest, self.most)  # once: all splits have as many of each
        plan = self.plan(count, chance)
        # with one digit there are few captions, which all splits need
        while count > 1 and split_of(repr(plan)) != split:
            plan = self.plan(count, chance)
        return self.drawn(plan, chance)

    def plan(self, count: int, chance: Random) -> list[tuple[int, int]]:
        """Cells in reading order, with the digit of each."""
        cells = shuffled(list(range(self.rows * self.columns)), chance)[:count]
        return [(cell, below(chance, 10)) for cell in sorted(cells)]

    def drawn(self, plan: Sequence[tuple[int, int]], chance: Random) -> Record:
        height, width = self.side // self.rows, self.side // self.columns
        cover, boxes, said = np.zeros((self.side, self.side)), [], list[str]()
        for number, (cell, digit) in enumerate(plan):
            row, column = divmod(cell, self.columns)
            top, left = row * height, column * width
            room = min(height, width)
            glyph = self.write(digit, between(chance, room * 5 // 8, room - 1), chance)
            tall, wide = glyph.shape
            down, right = below(chance, height - tall + 1), below(chance, width - wide + 1)
            light = between(chance, 70, 100) / 100
            cover[top + down :, left + right :][:tall, :wide] = glyph * light
            boxes.append((number * WORDS, (top, left, top + height, left + width)))
            said.append(f"{digit} {ROWS[self.rows][row]} {COLUMNS[self.columns][column]}")
        noise = np.frombuffer(chance.randbytes(self.side**2), np.uint8).astype(np.float64)
        ground = DARK + (noise.reshape(self.side, self.side) / 255 - 0.5) * 2 * self.noise
        mixed = ground + cover * (255 - ground)
        pixels: Pixels = np.clip(mixed, 0, 255).round().astype(np.uint8)[..., None]
        return {"picture": pixels, "caption": " , ".join(said), "boxes": tuple(boxes)}

    def describe(self) -> str:
        return (
            f"digits: {self.size:,} pictures of {self.side} x {self.side} pixels, {self.fewest} to "
            f"{self.most} digits in {self.rows} x {self.columns} cells; made here"
        )


def printed(digit: int, size: int, chance: Random) -> Plane:
    """A digit in Pillow's own font, `size` pixels high, a little turned."""
    return glyph(digit, size, 3 * between(chance, -4, 4))


@cache  # a few hundred small pictures, and most of the time that drawing takes
def glyph(digit: int, size: int, degrees: int) -> Plane:
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(48)
    image = Image.new("L", (64, 64))
    ImageDraw.Draw(image).text((32, 32), str(digit), 255, font, anchor="mm")
    turned = image.rotate(degrees, Image.Resampling.BILINEAR)
    return scaled(turned.crop(turned.getbbox()), size)


def written(digit: int, size: int, chance: Random) -> Plane:
    """A digit that somebody wrote, of those that come with scikit-learn."""
    from PIL import Image

    some = handwriting()[digit]
    image = Image.fromarray(some[below(chance, len(some))])
    return scaled(image.crop(image.getbbox()), size)


@cache
def handwriting() -> dict[int, list[Pixels]]:
    try:
        found: Any = import_module("sklearn.datasets").load_digits()
    except ImportError:
        raise ValueError(
            "drawn = 'scikit-learn' needs that package: pip install scikit-learn, or set 'font'"
        ) from None
    images = (found.images * 255 / 16).astype(np.uint8)
    return {n: list(images[found.target == n]) for n in range(10)}


def scaled(image: "Opened", size: int) -> Plane:
    """So high, or so wide if it is wider; values from 0 to 1."""
    from PIL import Image

    ratio = size / max(image.size)
    shape = (max(1, round(image.width * ratio)), max(1, round(image.height * ratio)))
    return np.asarray(image.resize(shape, Image.Resampling.BILINEAR), np.float64) / 255
