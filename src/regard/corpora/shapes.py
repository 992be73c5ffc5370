"""Pictures of one coloured shape each, drawn here: with its name, a sentence on it, and its place.

    {"picture": [h w 3], "label": "circle", "caption": "a small red circle at the top left",
     "box": (top, left, bottom, right)}

Shape, colour, size and place are drawn by themselves, on a dark ground with noise; edges are
smooth. The box is in pixels: what a model that knows the label should look at.
"""

import math
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from regard.corpora.corpus import Record
from regard.corpora.made import Made
from regard.corpora.pictures import Pixels
from regard.corpora.planted import between, split_of
from regard.corpora.reorder import below

Plane = NDArray[np.float64]
LEAST = 16  # pixels of a side: in less, shapes cannot be told apart


def circle(x: Plane, y: Plane, r: float) -> Plane:
    """How far a point is outside, in pixels; inside, below 0. So are the others."""
    return np.hypot(x, y) - r


def square(x: Plane, y: Plane, r: float) -> Plane:
    return np.maximum(abs(x), abs(y)) - 0.85 * r


def diamond(x: Plane, y: Plane, r: float) -> Plane:
    return (abs(x) + abs(y) - r) / math.sqrt(2)


def triangle(x: Plane, y: Plane, r: float) -> Plane:
    slope = abs(x) * math.cos(math.pi / 6) - y * 0.5
    return np.maximum(slope - 0.5 * r, y - 0.5 * r)


def cross(x: Plane, y: Plane, r: float) -> Plane:
    one = np.maximum(abs(x) - r, abs(y) - 0.3 * r)
    return np.minimum(one, np.maximum(abs(y) - r, abs(x) - 0.3 * r))


def ring(x: Plane, y: Plane, r: float) -> Plane:
    return abs(np.hypot(x, y) - 0.75 * r) - 0.25 * r


SHAPES: dict[str, Callable[[Plane, Plane, float], Plane]] = {
    "circle": circle,
    "square": square,
    "triangle": triangle,
    "diamond": diamond,
    "cross": cross,
    "ring": ring,
}
COLOURS = {
    "red": (230, 40, 40),
    "green": (40, 190, 60),
    "blue": (60, 90, 240),
    "yellow": (240, 220, 50),
    "purple": (170, 60, 200),
    "white": (245, 245, 245),
}
SMALL, LARGE = (8, 6), (4, 3)  # radii as parts of a side, from and to: no size is in between
ROWS, COLUMNS = ("top", "", "bottom"), ("left", "", "right")


class Shapes(Made):
    """A corpus of `size` pictures to train on and `held_out` each in dev and test.

    They are `side` x `side` pixels. The n-th picture of a split depends on the settings and n
    alone, and nothing but its noise is in two splits.
    """

    def __init__(
        self,
        size: int = 4000,
        *,
        seed: int = 0,
        held_out: int = 500,
        side: int = 32,
        shapes: Sequence[str] = tuple(SHAPES),
        noise: int = 24,
    ) -> None:
        super().__init__(size, seed, held_out)
        if side < LEAST:
            raise ValueError(f"side must be at least {LEAST} pixels, not {side}")
        if not 0 <= noise <= 100:
            raise ValueError(f"noise must be from 0 to 100, not {noise}")
        if unknown := [name for name in shapes if name not in SHAPES]:
            raise ValueError(f"shapes: there is no {unknown[0]!r}; there are {', '.join(SHAPES)}")
        if len(set(shapes)) < 2 or len(set(shapes)) < len(shapes):
            raise ValueError(f"shapes must be at least two different ones, not {list(shapes)}")
        self.side, self.shapes, self.noise = side, tuple(shapes), noise

    def example(self, split: str, number: int) -> Record:
        """The n-th picture, without those before it."""
        chance = Random(f"regard shapes {self.seed} {split} {number}")
        plan = self.plan(chance)
        while split_of(repr(plan)) != split:
            plan = self.plan(chance)
        return self.drawn(*plan, chance)

    def plan(self, chance: Random) -> tuple[str, str, int, int, int]:
        """Shape, colour, radius, and where its middle is: row and column."""
        shape = self.shapes[below(chance, len(self.shapes))]
        colour = [*COLOURS][below(chance, len(COLOURS))]
        low, high = SMALL if below(chance, 2) else LARGE
        radius = between(chance, self.side // low, self.side // high)
        top, left = (between(chance, radius, self.side - 1 - radius) for _ in range(2))
        return shape, colour, radius, top, left

    def drawn(
        self, shape: str, colour: str, radius: int, top: int, left: int, chance: Random
    ) -> Record:
        y, x = np.mgrid[: self.side, : self.side].astype(np.float64)
        outside = SHAPES[shape](x - left, y - top, float(radius))
        cover = np.clip(0.5 - outside, 0.0, 1.0)[..., None]
        noise = np.frombuffer(chance.randbytes(self.side**2 * 3), np.uint8).astype(np.float64)
        ground = 40 + (noise.reshape(self.side, self.side, 3) / 255 - 0.5) * 2 * self.noise
        mixed = ground + cover * (np.array(COLOURS[colour]) - 40)
        pixels: Pixels = np.clip(mixed, 0, 255).round().astype(np.uint8)
        inside = np.argwhere(cover[..., 0] >= 0.5)
        (above, before), (last, end) = inside.min(0).tolist(), inside.max(0).tolist()
        size = "large" if radius > self.side // SMALL[1] else "small"
        caption = f"a {size} {colour} {shape} {self.where(top, left)}"
        return {
            "picture": pixels,
            "label": shape,
            "caption": caption,
            "box": (above, before, last + 1, end + 1),
        }

    def where(self, top: int, left: int) -> str:
        row, column = ROWS[top * 3 // self.side], COLUMNS[left * 3 // self.side]
        if not row and not column:
            return "in the middle"
        if row and column:
            return f"at the {row} {column}"
        return f"at the {row}" if row else f"on the {column}"

    def describe(self) -> str:
        return (
            f"shapes: {self.size:,} pictures of {self.side} x {self.side} pixels, "
            f"each of one shape (of {len(self.shapes)}); made here"
        )
