"""Line charts with a logarithmic axis: as text for the terminal, or as a PNG or SVG file."""

import math
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from regard.errors import InputError
from regard.files import write_atomic
from regard.view.terminal import Ink, Surface

NumberSequence = Sequence[int | float]
Series = Mapping[str, NumberSequence]

PICTURE_SUFFIXES = (".png", ".svg")
TEXT_ROWS, MAX_TEXT_COLUMNS, TICK_LABEL_COLUMNS = 18, 100, 6  # of a chart as text
# Okabe & Ito 2008, for color-blind readers; markers and dashes work without color.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINE_STYLES = ("-", "--", "-.", ":")
TEXT_MARKERS, ASCII_MARKERS = "●▲■◆○△", "ox+*#%"


class ChartLabels(NamedTuple):
    """The title and the axis labels of a chart."""

    title: str
    x: str
    y: str


def render_log_chart(
    lines: Series,
    x: NumberSequence,
    labels: ChartLabels,
    surface: Surface = Surface(),  # noqa: B008 (immutable)
) -> str:
    """Return a chart as lines of text. Values without a logarithm (0, inf, NaN) leave a gap."""
    _check_lines(lines, x)
    low, high = _decades(lines)
    columns = max(20, min(surface.width, MAX_TEXT_COLUMNS) - TICK_LABEL_COLUMNS - 1)
    grid = [[" "] * columns for _ in range(TEXT_ROWS)]
    for number, values in enumerate(lines.values()):
        for column, value in _log_samples(values, x, columns):
            row = round((high - value) / (high - low) * (TEXT_ROWS - 1))
            grid[row][column] = _marker(number, surface.ink)
    bar, corner, dash = ("|", "+", "-") if surface.ink == "ascii" else ("│", "└", "─")
    ticks = _ticks(low, high)
    legend = "   ".join(f"{_marker(n, surface.ink)} {name}" for n, name in enumerate(lines))
    text_lines = [
        labels.title,
        f"{labels.y}   {legend}",
        "",
        *(
            f"{ticks.get(n, ''):>{TICK_LABEL_COLUMNS}}{bar}{''.join(row)}"
            for n, row in enumerate(grid)
        ),
        f"{'':>{TICK_LABEL_COLUMNS}}{corner}{dash * columns}",
        " " * (TICK_LABEL_COLUMNS + 1)
        + _axis_caption(f"{x[0]:g}", labels.x, f"{x[-1]:g}", columns),
    ]
    return "\n".join(line.rstrip(" ") for line in text_lines)


def save_log_chart(path: Path, lines: Series, x: NumberSequence, labels: ChartLabels) -> None:
    """Write a chart as PNG or SVG, completely or not at all."""
    check_path(path)
    _check_lines(lines, x)
    _decades(lines)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for number, (name, values) in enumerate(lines.items()):
        plotted = [value if _has_logarithm(value) else math.nan for value in values]
        style = LINE_STYLES[number % len(LINE_STYLES)]
        axes.plot(x, plotted, style, color=COLORS[number], linewidth=2, label=name)
    axes.set_yscale("log")
    axes.set(title=labels.title, xlabel=labels.x, ylabel=labels.y)
    axes.title.set_fontsize("medium")
    axes.margins(x=0.01)
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    buffer = BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "regard"}):  # the same lines give the same bytes
        figure.savefig(buffer, format=path.suffix[1:], dpi=150, metadata=metadata)
    write_atomic(path, buffer.getvalue())


def check_path(path: Path) -> None:
    """Check format, folder and matplotlib before the work begins."""
    if path.suffix not in PICTURE_SUFFIXES:
        raise InputError(f"{path}: a plot must end in {' or '.join(PICTURE_SUFFIXES)}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file")
    if find_spec("matplotlib") is None:
        missing = "matplotlib is not installed: pip install 'regard[plot]'"
        raise ModuleNotFoundError(missing, name="matplotlib")


def _check_lines(lines: Series, x: NumberSequence) -> None:
    if len(x) < 2 or not all(a < b for a, b in pairwise(x)):
        raise InputError("x must have at least two numbers, each larger than the one before")
    if not 1 <= len(lines) <= len(COLORS):
        raise InputError(f"lines must have 1 to {len(COLORS)} entries, not {len(lines)}")
    for name, values in lines.items():
        if len(values) != len(x):
            raise InputError(f"lines[{name!r}] has {len(values)} values, but x has {len(x)}")


def _has_logarithm(value: int | float) -> bool:
    return 0 < value < math.inf


def _decades(lines: Series) -> tuple[int, int]:
    """Return the powers of ten below and above all values."""
    positive = [value for values in lines.values() for value in values if _has_logarithm(value)]
    if not positive:
        raise InputError("lines must have a positive finite value; there is nothing to draw")
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    return low, max(high, low + 1)


def _log_samples(
    values: NumberSequence, x: NumberSequence, columns: int
) -> Iterator[tuple[int, float]]:
    """Yield each column and its logarithm, interpolated between the nearest x values."""
    left = 0
    for column in range(columns):
        position = x[0] + (x[-1] - x[0]) * column / (columns - 1)
        while left < len(x) - 2 and x[left + 1] <= position:
            left += 1
        fraction = (position - x[left]) / (x[left + 1] - x[left])
        ends = ((values[left], 1 - fraction), (values[left + 1], fraction))
        if all(_has_logarithm(value) for value, weight in ends if weight):
            yield column, sum(math.log10(value) * weight for value, weight in ends if weight)


def _ticks(low: int, high: int) -> dict[int, str]:
    """Return about six powers of ten, by row."""
    powers = range(high, low - 1, -math.ceil((high - low) / 5))
    rows = [round((high - power) / (high - low) * (TEXT_ROWS - 1)) for power in powers]
    return {row: f"1e{power}" if power else "1" for row, power in zip(rows, powers, strict=True)}


def _axis_caption(first: str, middle: str, last: str, width: int) -> str:
    return f"{first}{middle:^{max(width - len(first) - len(last), len(middle) + 2)}}{last}"


def _marker(number: int, ink: Ink) -> str:
    if ink == "ascii":
        return ASCII_MARKERS[number]
    if ink in ("shades", "16"):
        return TEXT_MARKERS[number]
    red, green, blue = bytes.fromhex(COLORS[number][1:])
    code = f"2;{red};{green};{blue}"
    if ink == "256":
        code = f"5;{16 + 36 * round(red / 51) + 6 * round(green / 51) + round(blue / 51)}"
    return f"\x1b[38;{code}m{TEXT_MARKERS[number]}\x1b[0m"
