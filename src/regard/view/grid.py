"""Weights that lie over a picture, in the terminal: small maps side by side, a cell for each patch.

Colours are those of `view.terminal`; a cell is two letters wide, so that it is about a square.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from regard.view.terminal import SHADES, Surface, cell, label

GAP = 2  # between two maps
TITLE = 12  # letters of a title, for which a narrow map gets room
NARROW = 16  # columns, above which a cell is one letter wide

Rows = Sequence[Sequence[float]]
Colour = tuple[float, float, float]


def grids(
    maps: Mapping[str, Rows],
    surface: Surface = Surface(),  # noqa: B008 (immutable)
    top: float | None = None,
) -> str:
    """Maps with their titles, as many beside one another as fit, without a last newline.

    A weight of `top` is drawn in full; not given, it is the greatest of all.
    """
    if not maps:
        raise ValueError("maps are missing: there is nothing to draw")
    high = max(max(map(max, rows)) for rows in maps.values()) if top is None else top
    blocks = [Block.of(title, rows, surface, high or 1.0) for title, rows in maps.items()]
    bands, used = [list[Block]()], 0
    for block in blocks:
        if bands[-1] and used + block.wide > surface.width:
            bands.append([])
            used = 0
        bands[-1].append(block)
        used += block.wide + GAP
    return "\n\n".join(beside(band, surface) for band in bands)


class Block(NamedTuple):
    """A map as lines, which are `cells` letters wide (colours not counted); with its title more."""

    title: str
    lines: list[str]
    cells: int
    wide: int

    @classmethod
    def of(cls, title: str, rows: Rows, surface: Surface, top: float) -> "Block":
        each = pitch(len(rows[0]))
        lines = ["".join(cell(weight / top, each, surface.ink) for weight in row) for row in rows]
        cells = each * len(rows[0])
        return cls(title, lines, cells, max(cells, min(cell_len(title), TITLE)))


def beside(band: Sequence[Block], surface: Surface) -> str:
    """Maps in one band, their titles above them."""
    rows = [""] * (1 + max(len(block.lines) for block in band))
    for block in band:
        head = label(block.title, block.wide, surface.ink)
        rows[0] += head + " " * (block.wide - cell_len(head) + GAP)
        for number in range(1, len(rows)):
            there = number <= len(block.lines)
            line = block.lines[number - 1] if there else " " * block.cells
            rows[number] += line + " " * (block.wide - block.cells + GAP)
    return "\n".join(row.rstrip(" ") for row in rows)


def thumbnail(
    colours: Sequence[Sequence[Colour]],
    surface: Surface = Surface(),  # noqa: B008 (immutable)
) -> str:
    """A picture of a few pixels (0 to 255): in its colours, or as bright as it is."""
    wide = pitch(len(colours[0]))
    return "\n".join("".join(tinted(one, wide, surface) for one in row) for row in colours)


def tinted(colour: Colour, wide: int, surface: Surface) -> str:
    red, green, blue = (min(max(round(part), 0), 255) for part in colour)
    light = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    match surface.ink:
        case "truecolor":
            return f"\x1b[48;2;{red};{green};{blue}m{' ' * wide}\x1b[0m"
        case "256":
            cube = 16 + 36 * round(red / 51) + 6 * round(green / 51) + round(blue / 51)
            return f"\x1b[48;5;{cube}m{' ' * wide}\x1b[0m"
        case "shades" | "16":  # of a picture, sixteen colours tell less than its light
            return SHADES[min(int(light * len(SHADES)), len(SHADES) - 1)] * wide
        case "ascii":
            return cell(light, wide, "ascii")


def pitch(columns: int) -> int:
    """How many letters wide a cell is."""
    return 1 if columns > NARROW else 2
