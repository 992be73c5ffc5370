"""Weights that lie over a picture, in the terminal: small maps side by side, a cell for each patch.

Colours are those of `view.terminal`; a cell is two letters wide, so that it is about a square.
"""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from regard.view.terminal import SHADES, Surface, cell, label

GAP = 2  # between two maps
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
    drawn = {title: lines(rows, surface, high or 1.0) for title, rows in maps.items()}
    return beside(drawn, {title: len(rows[0]) for title, rows in maps.items()}, surface)


def lines(rows: Rows, surface: Surface, top: float) -> list[str]:
    wide = pitch(len(rows[0]))
    return ["".join(cell(weight / top, wide, surface.ink) for weight in row) for row in rows]


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
        case "shades":
            return SHADES[min(int(light * len(SHADES)), len(SHADES) - 1)] * wide
        case "ascii":
            return cell(light, wide, "ascii")


def beside(drawn: Mapping[str, list[str]], columns: Mapping[str, int], surface: Surface) -> str:
    """Blocks of lines in bands, each as wide as the surface allows."""
    bands, band, used = list[list[str]](), list[str](), 0
    for title in drawn:
        wide = columns[title] * pitch(columns[title]) + GAP
        if band and used + wide - GAP > surface.width:
            bands.append(band)
            band, used = [], 0
        band.append(title)
        used += wide
    bands.append(band)
    return "\n\n".join(banded(band, drawn, columns, surface) for band in bands)


def banded(
    band: Sequence[str],
    drawn: Mapping[str, list[str]],
    columns: Mapping[str, int],
    surface: Surface,
) -> str:
    tall = max(len(drawn[title]) for title in band)
    rows = [""] * (tall + 1)
    for title in band:
        wide = columns[title] * pitch(columns[title])
        head = label(title, wide, surface.ink)
        rows[0] += head + " " * (wide - cell_len(head) + GAP)
        for number in range(tall):
            there = number < len(drawn[title])
            rows[number + 1] += (drawn[title][number] if there else " " * wide) + " " * GAP
    return "\n".join(row.rstrip(" ") for row in rows)


def pitch(columns: int) -> int:
    """How many letters wide a cell is."""
    return 1 if columns > NARROW else 2
