"""Attention to the patches of an image, in the terminal: small maps side by side.

Colors are those of `view.terminal`. A patch is two characters wide, which is about a square.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from regard.errors import InputError
from regard.view.cell_width import cell_len
from regard.view.terminal import SHADES, Surface, label, render_cell

GAP_CELLS = 2  # between two maps
MAX_TITLE_CELLS = 12  # a longer title does not make a narrow map wider
MAX_DOUBLE_WIDTH_COLUMNS = 16  # with more columns, a patch is one character wide

WeightRows = Sequence[Sequence[float]]
RgbColor = tuple[float, float, float]


def render_grids(
    maps: Mapping[str, WeightRows],
    surface: Surface = Surface(),  # noqa: B008 (immutable)
    max_weight: float | None = None,
) -> str:
    """Return maps with their titles, as many side by side as fit.

    A weight of `max_weight` has the brightest color; by default, it is the greatest weight.
    """
    if not maps:
        raise InputError("maps is empty; give at least one")
    full_weight = (
        max(max(map(max, rows)) for rows in maps.values()) if max_weight is None else max_weight
    )
    blocks = [
        GridBlock.from_rows(title, rows, surface, full_weight or 1.0)
        for title, rows in maps.items()
    ]
    bands, used_width = [list[GridBlock]()], 0
    for block in blocks:
        if bands[-1] and used_width + block.total_width > surface.width:
            bands.append([])
            used_width = 0
        bands[-1].append(block)
        used_width += block.total_width + GAP_CELLS
    return "\n\n".join(render_band(band, surface) for band in bands)


class GridBlock(NamedTuple):
    """A map as lines of text; widths are in cells of the terminal, without escape sequences."""

    title: str
    lines: list[str]
    map_width: int
    total_width: int

    @classmethod
    def from_rows(
        cls, title: str, rows: WeightRows, surface: Surface, max_weight: float
    ) -> "GridBlock":
        cell_width = letters_per_cell(len(rows[0]))
        lines = [
            "".join(render_cell(weight / max_weight, cell_width, surface.ink) for weight in row)
            for row in rows
        ]
        map_width = cell_width * len(rows[0])
        return cls(title, lines, map_width, max(map_width, min(cell_len(title), MAX_TITLE_CELLS)))


def render_band(band: Sequence[GridBlock], surface: Surface) -> str:
    """Return maps side by side, with their titles above them."""
    rows = [""] * (1 + max(len(block.lines) for block in band))
    for block in band:
        title = label(block.title, block.total_width, surface.ink)
        rows[0] += title + " " * (block.total_width - cell_len(title) + GAP_CELLS)
        for number in range(1, len(rows)):
            has_line = number <= len(block.lines)
            line = block.lines[number - 1] if has_line else " " * block.map_width
            rows[number] += line + " " * (block.total_width - block.map_width + GAP_CELLS)
    return "\n".join(row.rstrip(" ") for row in rows)


def render_thumbnail(
    colors: Sequence[Sequence[RgbColor]],
    surface: Surface = Surface(),  # noqa: B008 (immutable)
) -> str:
    """Return an image of a few pixels (0 to 255), in color or by brightness."""
    cell_width = letters_per_cell(len(colors[0]))
    return "\n".join(
        "".join(render_pixel(color, cell_width, surface) for color in row) for row in colors
    )


def render_pixel(color: RgbColor, width: int, surface: Surface) -> str:
    red, green, blue = (min(max(round(part), 0), 255) for part in color)
    brightness = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    match surface.ink:
        case "truecolor":
            return f"\x1b[48;2;{red};{green};{blue}m{' ' * width}\x1b[0m"
        case "256":
            cube = 16 + 36 * round(red / 51) + 6 * round(green / 51) + round(blue / 51)
            return f"\x1b[48;5;{cube}m{' ' * width}\x1b[0m"
        case "shades" | "16":  # brightness is clearer than sixteen colors
            return SHADES[min(int(brightness * len(SHADES)), len(SHADES) - 1)] * width
        case "ascii":
            return render_cell(brightness, width, "ascii")


def letters_per_cell(columns: int) -> int:
    """Return how many characters wide a patch is."""
    return 1 if columns > MAX_DOUBLE_WIDTH_COLUMNS else 2
