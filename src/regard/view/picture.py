"""A map of attention as a picture for print: one head as a matrix, many as a grid, a pool as bars.

picture(map, "svg")                    png, svg or pdf
picture(map, "pdf", shape="arcs")      tokens in a row, and arcs from each to what it looked at
"""

from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.view.chart import CELL, MOST_CELLS, drawn, labelled, titled
from regard.view.map import AttentionMap
from regard.view.terminal import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Form = Literal["png", "svg", "pdf"]
Shape = Literal["matrix", "heads", "bars", "arcs"]
THUMB = 1.1  # inches of one head among many
FAINT = 0.03  # an arc below it is not drawn


def picture(map_: AttentionMap, form: Form = "png", shape: Shape | None = None) -> bytes:
    """The bytes of the file; `shape` not given: what suits the map."""
    if shape is None:
        heads, kind = sum(layer.heads for layer in map_.layers), map_.layers[0].kind
        shape = "heads" if heads > 1 or kind == "grid" else "bars" if kind == "pool" else "matrix"
    if shape not in get_args(Shape):
        raise ValueError(f"shape must be one of {', '.join(get_args(Shape))}, not {shape!r}")
    make = {"matrix": matrix, "heads": heads_of, "bars": bars, "arcs": arcs}[shape]
    return drawn(make(map_), form)


def matrix(map_: AttentionMap) -> "Figure":
    """The mean of all heads; a row what looked, a column what was looked at."""
    from matplotlib.figure import Figure

    weights = map_.mean().layers[0].weights[0]
    down, across = weights.shape
    if max(down, across) > MOST_CELLS:
        raise ValueError(
            f"{down} x {across} cells are too small to see: at most {MOST_CELLS} to a side; "
            "write a page (.html)"
        )
    figure = Figure(figsize=(2.2 + CELL * across, 1.6 + CELL * down), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    labelled(axes, map_.queries.tokens, map_.keys.tokens)
    figure.colorbar(shown, ax=axes, fraction=0.04, label="weight")
    titled(axes, map_.title)
    return figure


def heads_of(map_: AttentionMap) -> "Figure":
    """Layers below one another, their heads side by side, without words."""
    from matplotlib.figure import Figure

    across = max(layer.heads for layer in map_.layers)
    size = (1.4 + THUMB * across, 0.8 + THUMB * len(map_.layers))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(map_.layers), across, squeeze=False)
    below = None if map_.picture is None else pixels_of(map_.picture)
    for row, layer in zip(grid, map_.layers, strict=True):
        for number, axes in enumerate(row):
            if number >= layer.heads:
                axes.set_axis_off()
                continue
            shown = np.sqrt(layer.weights[number])  # as on the page: small ones are seen
            if layer.kind == "grid":  # many places share one look
                shown = shown / max(float(shown.max()), 1e-9)
            if below is None:
                axes.imshow(shown, cmap="Greys", vmin=0, vmax=1, aspect="auto")
            else:
                down, wide = shown.shape
                axes.imshow(below, extent=(-0.5, wide - 0.5, down - 0.5, -0.5), cmap="Greys_r")
                axes.imshow(shown, cmap="inferno", vmin=0, vmax=1, alpha=0.6)
            axes.set_xticks([])
            axes.set_yticks([])
            if layer is map_.layers[0]:
                axes.set_title(str(number + 1), fontsize="small")
        name = label(layer.name, 20)
        row[0].set_ylabel(name, fontsize="small", rotation=0, ha="right", parse_math=False)
    figure.suptitle(label(map_.title, 90), fontsize="medium", parse_math=False)
    return figure


def pixels_of(png: bytes) -> NDArray[Any]:
    from matplotlib.image import imread

    return imread(BytesIO(png), format="png")


def bars(map_: AttentionMap) -> "Figure":
    """How much each token got, over all that looked."""
    from matplotlib.figure import Figure

    got = map_.mean().layers[0].weights[0].mean(0)
    if len(got) > MOST_CELLS:
        raise ValueError(
            f"{len(got)} bars are too many: at most {MOST_CELLS}; write a page (.html)"
        )
    figure = Figure(figsize=(1.6 + CELL * len(got), 2.6), layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(got)), got, color="0.35")
    names = [label(token, 16) for token in map_.keys.tokens]
    axes.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
    axes.set_ylabel("weight")
    axes.spines[["top", "right"]].set_visible(False)
    titled(axes, map_.title)
    return figure


def arcs(map_: AttentionMap) -> "Figure":
    """Tokens in a row; above them arcs to what is before, below them to what follows."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Arc

    if map_.queries.tokens != map_.keys.tokens:
        raise ValueError("arcs are for tokens that look at each other; take shape matrix")
    weights, count = map_.mean().layers[0].weights[0], len(map_.queries.tokens)
    if count > MOST_CELLS:
        raise ValueError(f"{count} tokens are too many for arcs: at most {MOST_CELLS}")
    figure = Figure(figsize=(1.2 + 0.62 * count, 1.2 + 0.4 * count), layout="constrained")
    axes = figure.subplots()
    for q, k in np.argwhere(weights > FAINT).tolist():
        if q == k:
            continue
        turn = (0, 180) if k < q else (180, 360)
        weight = float(weights[q, k])
        middle, wide = ((q + k) / 2, 0.0), abs(q - k)
        arc = Arc(middle, wide, wide, theta1=turn[0], theta2=turn[1])
        arc.set(color="#21918c", alpha=min(1.0, 0.1 + 0.9 * weight), linewidth=0.5 + 3 * weight)
        axes.add_patch(arc)
    for place, token in enumerate(map_.queries.tokens):
        text = axes.text(place, 0, label(token, 12), ha="center", va="center", fontsize="small")
        text.set_parse_math(False)
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    reach = max((abs(q - k) for q, k in np.argwhere(weights > FAINT).tolist()), default=1) / 2 + 0.5
    axes.set(xlim=(-0.8, count - 0.2), ylim=(-reach, reach), aspect="equal")
    axes.set_axis_off()
    titled(axes, map_.title)
    return figure
