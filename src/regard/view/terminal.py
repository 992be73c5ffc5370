"""Heatmaps in the terminal: one row per query, one column per slot.

Tokens are untrusted text: escape sequences and control characters never reach the terminal.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from regard.errors import InputError
from regard.view.cell_width import cell_len

if TYPE_CHECKING:
    from rich.console import Console

Ink = Literal["ascii", "shades", "16", "256", "truecolor"]
"""How a weight is drawn: digits, shades of one color, or a number of colors."""

MAX_ROW_LABEL_CELLS, MAX_COLUMN_LABEL_CELLS = 16, 8
DIGITS = ".123456789X"
SHADES = " ░▒▓█"
# Five points of viridis, dark to bright: readable in gray and for color-blind readers.
VIRIDIS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
ANSI_BACKGROUNDS = (40, 44, 46, 102, 103)  # black, blue, cyan, bright green, bright yellow

# CSI, OSC (with its text) and the two-character escape sequences, in 7-bit and 8-bit form.
ESCAPE_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
LEFT_TO_RIGHT = "\u200e"  # an invisible mark that stops reordering by direction
VISIBLE_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Surface(NamedTuple):
    """The width of a terminal in cells, and its ink."""

    width: int = 80
    ink: Ink = "shades"

    @classmethod
    def from_console(cls, console: "Console") -> "Surface":
        """Return the surface of a console; it respects `NO_COLOR`, `TERM=dumb` and `COLUMNS`."""
        if not console.encoding.startswith("utf"):
            return cls(console.width, "ascii")
        inks: dict[str | None, Ink] = {"truecolor": "truecolor", "256": "256", "standard": "16"}
        system = None if console.no_color else console.color_system
        return cls(console.width, inks.get(system, "shades"))


def render_heatmap(
    weights: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    surface: Surface = Surface(),  # noqa: B008 (immutable)
    max_weight: float = 1.0,
) -> str:
    """Return a heatmap as lines of text. A weight of `max_weight` has the strongest shade.

    If the columns do not fit side by side, they are split into blocks.
    """
    _check_shape(weights, rows, columns, max_weight)
    row_labels = [label(token, MAX_ROW_LABEL_CELLS, surface.ink) for token in rows]
    column_labels = [label(token, MAX_COLUMN_LABEL_CELLS, surface.ink) for token in columns]
    row_label_width = max(map(cell_len, row_labels), default=0) + 1
    column_width = max(map(cell_len, column_labels), default=0) + 1
    columns_per_block = max(1, (surface.width - row_label_width) // column_width)
    blocks = []
    for start in range(0, len(column_labels), columns_per_block):
        block = slice(start, start + columns_per_block)
        header = " " * row_label_width + "".join(
            _pad(text, column_width) for text in column_labels[block]
        )
        body = [
            _pad(text, row_label_width)
            + "".join(render_cell(w / max_weight, column_width, surface.ink) for w in row[block])
            for text, row in zip(row_labels, weights, strict=True)
        ]
        blocks.append("\n".join(line.rstrip(" ") for line in [header, *body]))
    return "\n\n".join(blocks)


def render_legend(surface: Surface = Surface(), max_weight: float = 1.0) -> str:  # noqa: B008 (immutable)
    """Return the legend of a map: the ink from 0 to `max_weight`."""
    match surface.ink:
        case "ascii":
            cells = " ".join(DIGITS)
        case "shades":
            cells = "".join(shade * 2 for shade in SHADES)
        case color_ink:
            cells = "".join(render_cell(i / 8, 2, color_ink) for i in range(9))
    return f"0 {cells} {max_weight:g}"


def label(token: str, limit: int, ink: Ink = "shades") -> str:
    """Return a token as printable text of at most `limit` cells."""
    text = _printable(token)
    if ink == "ascii":
        text = "".join(c if c.isascii() else "?" * cell_len(c) for c in text)
    if cell_len(text) <= limit:
        return text
    ellipsis = "~" if ink == "ascii" else "…"
    while cell_len(text) > limit - 1:
        text = text[:-1]  # removes combining marks before their letter
    return text + ellipsis


def _printable(token: str) -> str:
    text = "".join(_printable_char(char) for char in ESCAPE_SEQUENCES.sub("", token))
    if text.isspace():
        return "␣" * len(text)
    # A subword may start with a combining mark, which would change the cell before it.
    return "◌" + text if text and cell_len(text[0]) == 0 else text


def _printable_char(char: str) -> str:
    if char in VISIBLE_CONTROLS:
        return VISIBLE_CONTROLS[char]
    if "\ufe00" <= char <= "\ufe0f":  # variation selectors: terminals disagree about the width
        return ""
    match unicodedata.category(char):
        case "Cc" | "Cf" | "Cs" | "Zl" | "Zp":  # controls, joiners, direction marks, separators
            return ""
        case "Zs":
            return " "
        case "Cn" | "Co":  # unassigned, private
            return "\ufffd"
        case _:
            return char


def _pad(text: str, width: int) -> str:
    """Pad a text; a mark keeps neighbors that are read from the right in their columns."""
    is_right_to_left = any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in text)
    return text + LEFT_TO_RIGHT * is_right_to_left + " " * (width - cell_len(text))


def render_cell(level: float, width: int, ink: Ink) -> str:
    """Return a level from 0 to 1 as a cell of this width."""
    if math.isnan(level):
        return _pad("?", width)
    level = min(max(level, 0.0), 1.0)
    if ink == "ascii":
        return _pad(DIGITS[int(level * 10 + 0.5)], width)
    if ink == "shades":
        return SHADES[shade_index(level)] * width
    return render_on_color(" " * width, level, ink)


def shade_index(level: float) -> int:
    """Return one of five shades: the first below 5 %, as with digits, then one per quarter."""
    return 0 if level < 0.05 else min(int(level * 4), 3) + 1


def render_on_color(text: str, level: float, ink: Ink) -> str:
    """Return a text on the color of a level, in black or white, whichever is readable."""
    level = min(max(level, 0.0), 1.0)
    red, green, blue = _ramp_color(level)
    is_bright = shade_index(level) > 1 if ink == "16" else level > 0.5  # cyan of 16 is bright
    foreground = "" if text.isspace() else f";{30 if is_bright else 97}"
    if ink == "16":
        return f"\x1b[{ANSI_BACKGROUNDS[shade_index(level)]}{foreground}m{text}\x1b[0m"
    if ink == "truecolor":
        return f"\x1b[48;2;{red};{green};{blue}{foreground}m{text}\x1b[0m"
    cube = 16 + 36 * round(red / 51) + 6 * round(green / 51) + round(blue / 51)
    return f"\x1b[48;5;{cube}{foreground}m{text}\x1b[0m"


def _ramp_color(level: float) -> tuple[int, int, int]:
    position = level * (len(VIRIDIS) - 1)
    low = min(int(position), len(VIRIDIS) - 2)
    fraction = position - low
    red, green, blue = (
        round(a + (b - a) * fraction) for a, b in zip(VIRIDIS[low], VIRIDIS[low + 1], strict=True)
    )
    return red, green, blue


def _check_shape(
    weights: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    max_weight: float,
) -> None:
    if len(weights) != len(rows):
        raise InputError(f"weights has {len(weights)} rows, but rows has {len(rows)} labels")
    for i, row in enumerate(weights):
        if len(row) != len(columns):
            raise InputError(
                f"weights[{i}] has {len(row)} columns, but columns has {len(columns)} labels"
            )
    if not max_weight > 0:
        raise InputError(f"max_weight must be positive, not {max_weight}")
