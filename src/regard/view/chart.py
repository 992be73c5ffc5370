"""Line charts and heatmaps as PNG files, drawn by matplotlib.

Functions return bytes, for the caller to write. Labels are untrusted text.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING

from regard.errors import InputError
from regard.view.curve import COLORS, LINE_STYLES, ChartLabels, NumberSequence
from regard.view.terminal import MAX_COLUMN_LABEL_CELLS, MAX_ROW_LABEL_CELLS, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Lines = Mapping[str, tuple[NumberSequence, NumberSequence]]
"""Name -> x values and y values of a line."""

CELL_INCHES = 0.32
MARKERS, MAX_MARKED_POINTS = "o^sDvP", 40  # a line with more points has no markers
# From Debian's fonts-noto-cjk, fonts-wqy-*, fonts-ipa*, fonts-noto-core, and others.
FALLBACK_FONTS = (
    *(f"Noto Sans CJK {land}" for land in ("SC", "JP", "KR", "TC")),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "IPAGothic", "Droid Sans Fallback"),
    *(f"Noto Sans {script}" for script in ("Arabic", "Hebrew", "Devanagari", "Thai", "Bengali")),
    *("Noto Naskh Arabic", "PingFang SC", "Microsoft YaHei", "Hiragino Sans", "Malgun Gothic"),
)
MAX_CELLS = 120  # per side; more would be too small to see


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def line_chart_png(lines: Lines, labels: ChartLabels, ticks: Sequence[str] = ()) -> bytes:
    """Plot lines over a common axis; `ticks` are the names of x = 0, 1, ..."""
    from matplotlib.figure import Figure

    if not lines:
        raise InputError("lines is empty; give at least one")
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for number, (name, (x, y)) in enumerate(lines.items()):
        axes.plot(
            x,
            y,
            LINE_STYLES[number // len(COLORS) % len(LINE_STYLES)],
            color=COLORS[number % len(COLORS)],
            marker=MARKERS[number % len(MARKERS)] if len(x) <= MAX_MARKED_POINTS else None,
            label=label(name, 60),
        )
    if ticks:
        axes.set_xticks(range(len(ticks)), ticks)
    axes.set(xlabel=labels.x, ylabel=labels.y)
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    set_title(axes, labels.title)
    legend = axes.legend(frameon=False, fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure_bytes(figure)


def heatmap_png(
    weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], title: str
) -> bytes:
    """Draw a heatmap: one row per query, one column per slot, white 0 and black 1."""
    from matplotlib.figure import Figure

    down, across = len(rows), len(columns)
    if not down or not across or [len(row) for row in weights] != [across] * down:
        raise InputError(f"weights must have {down} rows of {across} numbers, one per label")
    if max(down, across) > MAX_CELLS:
        raise InputError(f"weights must have at most {MAX_CELLS} per side, not {down} x {across}")
    figure = Figure(
        figsize=(2.2 + CELL_INCHES * across, 1.6 + CELL_INCHES * down), layout="constrained"
    )
    axes = figure.subplots()
    image = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    label_axes(axes, rows, columns)
    figure.colorbar(image, ax=axes, fraction=0.04, label="weight")
    set_title(axes, title)
    return figure_bytes(figure)


def label_axes(axes: "Axes", rows: Sequence[str], columns: Sequence[str]) -> None:
    """Put tokens to the left of a matrix, and above it."""
    axes.xaxis.tick_top()
    for axis, names, limit in (
        (axes.xaxis, columns, MAX_COLUMN_LABEL_CELLS),
        (axes.yaxis, rows, MAX_ROW_LABEL_CELLS),
    ):
        axis.set_ticks(range(len(names)), [label(name, limit) for name in names], parse_math=False)
        axis.set_tick_params(length=0, labelrotation=90 if axis is axes.xaxis else 0)


def set_title(axes: "Axes", title: str) -> None:
    axes.set_title(label(title, 90), fontsize="medium", parse_math=False)


@cache
def font_families() -> list[str]:
    """Return the default font, then installed fonts for other scripts."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ["sans-serif", *(name for name in FALLBACK_FONTS if name in installed)]


def figure_bytes(figure: "Figure", file_format: str = "png") -> bytes:
    """Return a figure as png, svg or pdf; the same figure gives the same bytes."""
    from matplotlib import rc_context

    buffer = BytesIO()
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with (
        warnings.catch_warnings(),
        rc_context({"svg.hashsalt": "regard", "pdf.fonttype": 42, "font.family": font_families()}),
    ):
        # a character that no font has is drawn as a box
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        # "tight": with square cells, constrained layout cuts off long labels
        figure.savefig(
            buffer, format=file_format, dpi=130, bbox_inches="tight", metadata=metadata[file_format]
        )
    return buffer.getvalue()
