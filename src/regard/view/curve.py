"""Lines on a logarithmic axis: as text for the terminal, or as a PNG or SVG file."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from regard.view.terminal import Ink, Surface

Numbers = Sequence[int | float]
Lines = Mapping[str, Numbers]

FORMATS = (".png", ".svg")
HEIGHT, WIDTH, MARGIN = 18, 100, 6  # of a text picture: rows, most columns, room for a number
# Okabe & Ito 2008, told apart by the colour-blind; marks and dashes do without colour.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-.", ":")
MARKS, ASCII_MARKS = "●▲■◆○△", "ox+*#%"


class Words(NamedTuple):
    """What a picture says beside its lines."""

    title: str
    x: str
    y: str


def draw(
    lines: Lines,
    x: Numbers,
    words: Words,
    surface: Surface = Surface(),  # noqa: B008 (immutable)
) -> str:
    """The picture as lines of text. A value that has no logarithm (0, inf, NaN) leaves a gap."""
    _check(lines, x)
    low, high = _decades(lines)
    columns = max(20, min(surface.width, WIDTH) - MARGIN - 1)
    grid = [[" "] * columns for _ in range(HEIGHT)]
    for number, values in enumerate(lines.values()):
        for column, value in _sampled(values, x, columns):
            row = round((high - value) / (high - low) * (HEIGHT - 1))
            grid[row][column] = _mark(number, surface.ink)
    bar, corner, dash = ("|", "+", "-") if surface.ink == "ascii" else ("│", "└", "─")
    ticks = _ticks(low, high)
    legend = "   ".join(f"{_mark(n, surface.ink)} {name}" for n, name in enumerate(lines))
    whole = [
        words.title,
        f"{words.y}   {legend}",
        "",
        *(f"{ticks.get(n, ''):>{MARGIN}}{bar}{''.join(row)}" for n, row in enumerate(grid)),
        f"{'':>{MARGIN}}{corner}{dash * columns}",
        " " * (MARGIN + 1) + _spread(f"{x[0]:g}", words.x, f"{x[-1]:g}", columns),
    ]
    return "\n".join(line.rstrip(" ") for line in whole)


def save(path: Path, lines: Lines, x: Numbers, words: Words) -> None:
    """Write the picture as a PNG or SVG, whole or not at all."""
    check_path(path)
    _check(lines, x)
    _decades(lines)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for number, (name, values) in enumerate(lines.items()):
        seen = [value if _has_logarithm(value) else math.nan for value in values]
        style = DASHES[number % len(DASHES)]
        axes.plot(x, seen, style, color=COLOURS[number], linewidth=2, label=name)
    axes.set_yscale("log")
    axes.set(title=words.title, xlabel=words.x, ylabel=words.y)
    axes.title.set_fontsize("medium")
    axes.margins(x=0.01)
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    drawn = BytesIO()
    undated = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "regard"}):  # so the same lines give the same file
        figure.savefig(drawn, format=path.suffix[1:], dpi=150, metadata=undated)
    _write(path, drawn.getvalue())


def check_path(path: Path) -> None:
    """Fail before the work, not after it: on the format, the folder, or for want of matplotlib."""
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: a picture must end in {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder")
    if find_spec("matplotlib") is None:
        missing = "matplotlib is not installed: pip install 'regard[plot]'"
        raise ModuleNotFoundError(missing, name="matplotlib")


def _write(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _check(lines: Lines, x: Numbers) -> None:
    if len(x) < 2 or not all(a < b for a, b in pairwise(x)):
        raise ValueError("x must hold at least two numbers, each larger than the one before")
    if not 1 <= len(lines) <= len(COLOURS):
        raise ValueError(f"lines must be 1 to {len(COLOURS)}, not {len(lines)}")
    for name, values in lines.items():
        if len(values) != len(x):
            raise ValueError(f"lines[{name!r}] has {len(values)} values, but x has {len(x)}")


def _has_logarithm(value: int | float) -> bool:
    return 0 < value < math.inf


def _decades(lines: Lines) -> tuple[int, int]:
    """The whole powers of ten around all values."""
    known = [value for values in lines.values() for value in values if _has_logarithm(value)]
    if not known:
        raise ValueError("lines must hold a positive finite value: there is nothing to draw")
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    return low, max(high, low + 1)


def _sampled(values: Numbers, x: Numbers, columns: int) -> Iterator[tuple[int, float]]:
    """Each column with its logarithm, on the straight line between the nearest places on x."""
    left = 0
    for column in range(columns):
        at = x[0] + (x[-1] - x[0]) * column / (columns - 1)
        while left < len(x) - 2 and x[left + 1] <= at:
            left += 1
        share = (at - x[left]) / (x[left + 1] - x[left])
        ends = ((values[left], 1 - share), (values[left + 1], share))
        if all(_has_logarithm(value) for value, weight in ends if weight):
            yield column, sum(math.log10(value) * weight for value, weight in ends if weight)


def _ticks(low: int, high: int) -> dict[int, str]:
    """Row -> power of ten, for about six of them."""
    powers = range(high, low - 1, -math.ceil((high - low) / 5))
    rows = [round((high - power) / (high - low) * (HEIGHT - 1)) for power in powers]
    return {row: f"1e{power}" if power else "1" for row, power in zip(rows, powers, strict=True)}


def _spread(first: str, middle: str, last: str, width: int) -> str:
    return f"{first}{middle:^{max(width - len(first) - len(last), len(middle) + 2)}}{last}"


def _mark(number: int, ink: Ink) -> str:
    if ink == "ascii":
        return ASCII_MARKS[number]
    if ink in ("shades", "16"):
        return MARKS[number]
    red, green, blue = bytes.fromhex(COLOURS[number][1:])
    code = f"2;{red};{green};{blue}"
    if ink == "256":
        code = f"5;{16 + 36 * round(red / 51) + 6 * round(green / 51) + round(blue / 51)}"
    return f"\x1b[38;{code}m{MARKS[number]}\x1b[0m"
