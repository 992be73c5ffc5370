"""Pictures in files, drawn by matplotlib: lines beside one another, and weights as a map.

They come back as the bytes of a file, for the caller to write. Labels are untrusted text.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING

from regard.view.curve import COLOURS, DASHES, Numbers, Words
from regard.view.terminal import COLUMN_LABEL, ROW_LABEL, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Lines = Mapping[str, tuple[Numbers, Numbers]]
"""Name -> places on x, and the values there."""

CELL = 0.32  # inches
MARKS, FEW = "o^sDvP", 40  # places of a line that are still marked
SCRIPTS = (  # of Debian's fonts-noto-cjk, fonts-wqy-*, fonts-ipa*, fonts-noto-core, and of others
    *(f"Noto Sans CJK {land}" for land in ("SC", "JP", "KR", "TC")),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "IPAGothic", "Droid Sans Fallback"),
    *(f"Noto Sans {script}" for script in ("Arabic", "Hebrew", "Devanagari", "Thai", "Bengali")),
    *("Noto Naskh Arabic", "PingFang SC", "Microsoft YaHei", "Hiragino Sans", "Malgun Gothic"),
)
MOST_CELLS = 120  # to a side: what is longer has cells too small to see


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(lines: Lines, words: Words, ticks: Sequence[str] = ()) -> bytes:
    """Lines over a common axis; with `ticks`, places 0, 1, … on it have these names."""
    from matplotlib.figure import Figure

    if not lines:
        raise ValueError("lines are missing: there is nothing to draw")
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for number, (name, (x, y)) in enumerate(lines.items()):
        axes.plot(
            x,
            y,
            DASHES[number // len(COLOURS) % len(DASHES)],
            color=COLOURS[number % len(COLOURS)],
            marker=MARKS[number % len(MARKS)] if len(x) <= FEW else None,
            label=label(name, 60),
        )
    if ticks:
        axes.set_xticks(range(len(ticks)), ticks)
    axes.set(xlabel=words.x, ylabel=words.y)
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    titled(axes, words.title)
    legend = axes.legend(frameon=False, fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)
    return drawn(figure)


def heat_map(
    weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], title: str
) -> bytes:
    """A row a query, a column a slot, a cell as dark as its weight from 0 to 1."""
    from matplotlib.figure import Figure

    down, across = len(rows), len(columns)
    if not down or not across or [len(row) for row in weights] != [across] * down:
        raise ValueError(f"weights must be {down} rows of {across} numbers, as rows and columns")
    if max(down, across) > MOST_CELLS:
        raise ValueError(f"weights must be at most {MOST_CELLS} to a side, not {down} x {across}")
    figure = Figure(figsize=(2.2 + CELL * across, 1.6 + CELL * down), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    labelled(axes, rows, columns)
    figure.colorbar(shown, ax=axes, fraction=0.04, label="weight")
    titled(axes, title)
    return drawn(figure)


def labelled(axes: "Axes", rows: Sequence[str], columns: Sequence[str]) -> None:
    """Tokens to the left of a matrix, and above it."""
    axes.xaxis.tick_top()
    for axis, names, limit in ((axes.xaxis, columns, COLUMN_LABEL), (axes.yaxis, rows, ROW_LABEL)):
        axis.set_ticks(range(len(names)), [label(name, limit) for name in names], parse_math=False)
        axis.set_tick_params(length=0, labelrotation=90 if axis is axes.xaxis else 0)


def titled(axes: "Axes", title: str) -> None:
    axes.set_title(label(title, 90), fontsize="medium", parse_math=False)


@cache
def families() -> list[str]:
    """The usual font, and for letters that it has not those of other scripts that are there."""
    from matplotlib.font_manager import fontManager

    there = set(fontManager.get_font_names())
    return ["sans-serif", *(name for name in SCRIPTS if name in there)]


def drawn(figure: "Figure", form: str = "png") -> bytes:
    """The bytes of a png, svg or pdf: the same figure gives the same."""
    from matplotlib import rc_context

    data = BytesIO()
    unsaid = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with (
        warnings.catch_warnings(),
        rc_context({"svg.hashsalt": "regard", "pdf.fonttype": 42, "font.family": families()}),
    ):
        # a letter that the font has not is drawn as a box, which says it well enough
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        # "tight": square cells leave the axes no room to give way to long labels
        figure.savefig(data, format=form, dpi=130, bbox_inches="tight", metadata=unsaid[form])
    return data.getvalue()
