"""Images of one colored shape each, with its name, a caption and a bounding box.

    {"image": [h w 3], "label": "circle", "caption": "a small red circle at the top left",
     "box": (top, left, bottom, right)}

Shape, color, size and position are drawn independently, on a dark background with noise; edges
are smooth. The box is in pixels: where a model that knows the label should attend.
"""

import math
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from regard.data.corpus import Record
from regard.data.formats.images import Pixels
from regard.data.synthetic.base import SyntheticCorpus
from regard.data.synthetic.planted import random_between, text_split
from regard.data.synthetic.reorder import random_below
from regard.errors import InputError

Plane = NDArray[np.float64]
MIN_SIDE = 16  # pixels: smaller shapes look alike


def circle(x: Plane, y: Plane, r: float) -> Plane:
    """Return the signed distance to the outline in pixels, negative inside; so do all shapes."""
    return np.hypot(x, y) - r


def square(x: Plane, y: Plane, r: float) -> Plane:
    return np.maximum(abs(x), abs(y)) - 0.85 * r


def diamond(x: Plane, y: Plane, r: float) -> Plane:
    return (abs(x) + abs(y) - r) / math.sqrt(2)


def triangle(x: Plane, y: Plane, r: float) -> Plane:
    slope = abs(x) * math.cos(math.pi / 6) - y * 0.5
    return np.maximum(slope - 0.5 * r, y - 0.5 * r)


def cross(x: Plane, y: Plane, r: float) -> Plane:
    horizontal = np.maximum(abs(x) - r, abs(y) - 0.3 * r)
    return np.minimum(horizontal, np.maximum(abs(y) - r, abs(x) - 0.3 * r))


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
COLORS = {
    "red": (230, 40, 40),
    "green": (40, 190, 60),
    "blue": (60, 90, 240),
    "yellow": (240, 220, 50),
    "purple": (170, 60, 200),
    "white": (245, 245, 245),
}
# Smallest and largest radius, as divisors of the side; radii between the two classes do not occur
SMALL_RADII, LARGE_RADII = (8, 6), (4, 3)
ROW_NAMES, COLUMN_NAMES = ("top", "", "bottom"), ("left", "", "right")


class Shapes(SyntheticCorpus):
    """A corpus of `size` training images of `side` x `side` pixels, and `held_out` in dev and test.

    An image depends on the settings and its index alone, and is in one split only, whatever its
    noise.
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
        if side < MIN_SIDE:
            raise InputError(f"side must be at least {MIN_SIDE} pixels, not {side}")
        if not 0 <= noise <= 100:
            raise InputError(f"noise must be from 0 to 100, not {noise}")
        if unknown := [name for name in shapes if name not in SHAPES]:
            raise InputError(
                f"shapes: unknown shape {unknown[0]!r}; choose from {', '.join(SHAPES)}"
            )
        if len(set(shapes)) < 2 or len(set(shapes)) < len(shapes):
            raise InputError(f"shapes must be at least two different names, not {list(shapes)}")
        self.side, self.shapes, self.noise = side, tuple(shapes), noise

    def example(self, split: str, index: int) -> Record:
        """Return image `index` of a split, without drawing those before it."""
        rng = Random(f"regard shapes {self.seed} {split} {index}")
        plan = self.draw_plan(rng)
        while text_split(repr(plan)) != split:
            plan = self.draw_plan(rng)
        return self.draw_record(*plan, rng)

    def draw_plan(self, rng: Random) -> tuple[str, str, int, int, int]:
        """Draw shape, color, radius, and row and column of the center."""
        shape = self.shapes[random_below(rng, len(self.shapes))]
        color = [*COLORS][random_below(rng, len(COLORS))]
        low, high = SMALL_RADII if random_below(rng, 2) else LARGE_RADII
        radius = random_between(rng, self.side // low, self.side // high)
        top, left = (random_between(rng, radius, self.side - 1 - radius) for _ in range(2))
        return shape, color, radius, top, left

    def draw_record(
        self, shape: str, color: str, radius: int, top: int, left: int, rng: Random
    ) -> Record:
        y, x = np.mgrid[: self.side, : self.side].astype(np.float64)
        outside = SHAPES[shape](x - left, y - top, float(radius))
        coverage = np.clip(0.5 - outside, 0.0, 1.0)[..., None]
        noise = np.frombuffer(rng.randbytes(self.side**2 * 3), np.uint8).astype(np.float64)
        background = 40 + (noise.reshape(self.side, self.side, 3) / 255 - 0.5) * 2 * self.noise
        blended = background + coverage * (np.array(COLORS[color]) - 40)
        pixels: Pixels = np.clip(blended, 0, 255).round().astype(np.uint8)
        inside = np.argwhere(coverage[..., 0] >= 0.5)
        (first_row, first_column), (last_row, last_column) = (
            inside.min(0).tolist(),
            inside.max(0).tolist(),
        )
        size = "large" if radius > self.side // SMALL_RADII[1] else "small"
        caption = f"a {size} {color} {shape} {self.position_phrase(top, left)}"
        return {
            "image": pixels,
            "label": shape,
            "caption": caption,
            "box": (first_row, first_column, last_row + 1, last_column + 1),
        }

    def position_phrase(self, top: int, left: int) -> str:
        row, column = ROW_NAMES[top * 3 // self.side], COLUMN_NAMES[left * 3 // self.side]
        if not row and not column:
            return "in the middle"
        if row and column:
            return f"at the {row} {column}"
        return f"at the {row}" if row else f"on the {column}"

    def describe(self) -> str:
        return (
            f"shapes: {self.size:,} images of {self.side} x {self.side} pixels, "
            f"each of one shape (of {len(self.shapes)}); synthetic"
        )
