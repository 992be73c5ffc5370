"""A map of attention as a picture for print: one head as a matrix, many as a grid, a pool as bars.

picture(map, "svg")                    png, svg or pdf
picture(map, "pdf", shape="arcs")      tokens in a row, and arcs from each to what it looked at
picture(map, "png", shape="text")      a document, sentences and words shaded
picture(map, "png", shape="strip")     a picture for each word that looked at it
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.view.attention_map import AttentionLayer, AttentionMap
from regard.view.chart import CELL_INCHES, MAX_CELLS, figure_bytes, label_axes, set_title
from regard.view.terminal import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PictureFormat = Literal["png", "svg", "pdf"]
PictureStyle = Literal["matrix", "heads", "bars", "arcs", "text", "strip"]
THUMBNAIL_INCHES = 1.1  # inches of one head among many
MAX_ENLARGED_HEADS = 4  # heads that have room to be larger
MAPS_PER_ROW = 8  # words of a caption in a line
DOCUMENT_LINE_LENGTH = 84  # letters of a document in a line
MIN_ARC_WEIGHT = 0.03  # an arc below it is not drawn


def picture_bytes(
    map_: AttentionMap, file_format: PictureFormat = "png", style: PictureStyle | None = None
) -> bytes:
    """The bytes of the file; `shape` not given: what suits the map."""
    if style is None:
        style = default_style(map_)
    if style not in get_args(PictureStyle):
        raise ValueError(f"style must be one of {', '.join(get_args(PictureStyle))}, not {style!r}")
    builders = {
        "matrix": matrix_figure,
        "heads": head_grid_figure,
        "bars": bar_figure,
        "arcs": arc_figure,
    }
    build_figure = {**builders, "text": document_figure, "strip": strip_figure}[style]
    return figure_bytes(build_figure(map_), file_format)


def default_style(map_: AttentionMap) -> PictureStyle:
    """What suits a map."""
    heads, kind = [layer.heads for layer in map_.layers], map_.layers[0].kind
    if kind == "grid":
        return "strip" if len(heads) > 1 and max(heads) == 1 else "heads"
    if kind == "pool" and len(map_.queries.tokens) > 1:
        return "text"
    return "heads" if sum(heads) > 1 else "bars" if kind == "pool" else "matrix"


def matrix_figure(map_: AttentionMap) -> "Figure":
    """The mean of all heads; a row what looked, a column what was looked at."""
    from matplotlib.figure import Figure

    weights = map_.mean().layers[0].weights[0]
    down, across = weights.shape
    if max(down, across) > MAX_CELLS:
        raise ValueError(
            f"{down} x {across} cells are too small to see: at most {MAX_CELLS} to a side; "
            "write a page (.html)"
        )
    figure = Figure(
        figsize=(2.2 + CELL_INCHES * across, 1.6 + CELL_INCHES * down), layout="constrained"
    )
    axes = figure.subplots()
    image = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    label_axes(axes, map_.queries.tokens, map_.keys.tokens)
    draw_gold_links(axes, map_)
    figure.colorbar(image, ax=axes, fraction=0.04, label="weight")
    set_title(axes, map_.title)
    return figure


def draw_gold_links(axes: "Axes", map_: AttentionMap) -> None:
    """Frames around links of people, dashed where they are possible only."""
    from matplotlib.patches import Rectangle

    if map_.annotations.gold is None:
        return
    queries, keys = map_.content_word_indices()
    possible = {(queries[query], keys[key]) for key, query in map_.annotations.gold.possible}
    sure = {(queries[query], keys[key]) for key, query in map_.annotations.gold.sure}
    for q, row in enumerate(map_.queries.word_ids):
        for k, column in enumerate(map_.keys.word_ids):
            if (row, column) in possible:
                style = "-" if (row, column) in sure else ":"
                frame = Rectangle((k - 0.46, q - 0.46), 0.92, 0.92, fill=False, linestyle=style)
                frame.set(edgecolor="#d55e00", linewidth=1.6)
                axes.add_patch(frame)


def head_grid_figure(map_: AttentionMap) -> "Figure":
    """Layers below one another, their heads side by side, without words."""
    from matplotlib.figure import Figure

    across, down = max(layer.heads for layer in map_.layers), len(map_.layers)
    thumbnail_inches = THUMBNAIL_INCHES * (2 if across * down <= MAX_ENLARGED_HEADS else 1)
    size = (1.4 + thumbnail_inches * across, 0.8 + thumbnail_inches * down)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(map_.layers), across, squeeze=False)
    background = None if map_.image is None else decode_png(map_.image)
    for row, layer in zip(grid, map_.layers, strict=True):
        for number, axes in enumerate(row):
            if number >= layer.heads:
                axes.set_axis_off()
                continue
            draw_head(axes, layer, number, background)
            if layer is map_.layers[0]:
                axes.set_title(str(number + 1), fontsize="small")
        name = label(layer.name, 20)
        row[0].set_ylabel(name, fontsize="small", rotation=0, ha="right", parse_math=False)
    figure.suptitle(label(map_.title, 90), fontsize="medium", parse_math=False)
    return figure


def draw_head(
    axes: "Axes", layer: AttentionLayer, head: int, background: NDArray[Any] | None
) -> None:
    """One head without words, over its picture if it has one."""
    intensity = np.sqrt(layer.weights[head])  # as on the page: small ones are seen
    if layer.kind == "grid":  # many places share one look
        intensity = intensity / max(float(intensity.max()), 1e-9)
    if background is None:
        axes.imshow(intensity, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    else:
        down, across = intensity.shape
        axes.imshow(background, extent=(-0.5, across - 0.5, down - 0.5, -0.5), cmap="Greys_r")
        axes.imshow(intensity, cmap="inferno", vmin=0, vmax=1, alpha=0.6)
    axes.set_xticks([])
    axes.set_yticks([])


def strip_figure(map_: AttentionMap) -> "Figure":
    """For each layer (of a caption: each word) the mean of its heads, in lines of `ACROSS`."""
    from matplotlib.figure import Figure

    count = len(map_.layers)
    across, down = min(count, MAPS_PER_ROW), -(-count // MAPS_PER_ROW)
    figure = Figure(figsize=(1.5 * across, 0.5 + 1.75 * down), layout="constrained")
    background = None if map_.image is None else decode_png(map_.image)
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.set_axis_off()
    for axes, layer in zip(grid, map_.layers, strict=False):
        draw_head(axes, replace(layer, weights=layer.weights.mean(0, keepdims=True)), 0, background)
        axes.set_title(label(layer.name, 16), fontsize="small", parse_math=False)
    figure.suptitle(label(map_.title, 90), fontsize="medium", parse_math=False)
    return figure


def document_figure(map_: AttentionMap) -> "Figure":
    """Each row that looks is a sentence: before it its share, its words on their weight."""
    from matplotlib.figure import Figure

    weights, tokens = map_.layers[0].weights.mean(0), map_.keys.tokens
    sentence_shares = (
        map_.layers[-1].weights.mean(0).sum(-1)
    )  # of documents: words times their sentence
    lines = list[tuple[float, list[tuple[str, float]]]]()
    for row, share in zip(weights, sentence_shares.tolist(), strict=True):
        words = [(label(tokens[k], 16), float(row[k])) for k in np.flatnonzero(row).tolist()]
        parts = list(wrapped_lines(words, DOCUMENT_LINE_LENGTH))
        lines += [(share if not n else -1.0, part) for n, part in enumerate(parts)]
    if len(lines) > MAX_CELLS:
        raise ValueError(f"{len(lines)} lines are too many for a picture; write a page (.html)")
    figure = Figure(figsize=(8.4, 0.7 + 0.3 * len(lines)), layout="constrained")
    axes, top = figure.subplots(), max(float(weights.max()), 1e-9)
    axes.set(xlim=(-6, DOCUMENT_LINE_LENGTH + 2), ylim=(len(lines), -1))
    axes.set_axis_off()
    for y, (share, words) in enumerate(lines):
        if share >= 0:
            draw_shaded_text(axes, -5, y, f"{share:.0%}".rjust(4), share, "#d55e00")
        x = 0
        for word, weight in words:
            draw_shaded_text(axes, x, y, word, weight / top, "#0072b2")
            x += len(word) + 1
    set_title(axes, map_.title)
    return figure


def wrapped_lines(
    words: Sequence[tuple[str, float]], width: int
) -> Iterator[list[tuple[str, float]]]:
    """Lines of at most so many letters."""
    line, space_left = list[tuple[str, float]](), width
    for word in words:
        if line and len(word[0]) > space_left:
            yield line
            line, space_left = [], width
        line.append(word)
        space_left -= len(word[0]) + 1
    if line:
        yield line


def draw_shaded_text(axes: "Axes", x: int, y: int, text: str, level: float, color: str) -> None:
    """Letters of one width, on a ground that is as strong as the level."""
    artist = axes.text(x, y, text, family="monospace", fontsize=10, va="center")
    artist.set_parse_math(False)
    artist.set_bbox({"facecolor": color, "alpha": 0.75 * level, "edgecolor": "none", "pad": 1.2})


def decode_png(png: bytes) -> NDArray[Any]:
    from matplotlib.image import imread

    return imread(BytesIO(png), format="png")


def bar_figure(map_: AttentionMap) -> "Figure":
    """How much each token got, over all that looked."""
    from matplotlib.figure import Figure

    token_weights = map_.mean().layers[0].weights[0].mean(0)
    if len(token_weights) > MAX_CELLS:
        raise ValueError(
            f"{len(token_weights)} bars are too many: at most {MAX_CELLS}; write a page (.html)"
        )
    figure = Figure(figsize=(1.6 + CELL_INCHES * len(token_weights), 2.6), layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(token_weights)), token_weights, color="0.35")
    names = [label(token, 16) for token in map_.keys.tokens]
    axes.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
    axes.set_ylabel("weight")
    axes.spines[["top", "right"]].set_visible(False)
    set_title(axes, map_.title)
    return figure


def arc_figure(map_: AttentionMap) -> "Figure":
    """Tokens in a row; above them arcs to what is before, below them to what follows."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Arc

    if map_.queries.tokens != map_.keys.tokens:
        raise ValueError("arcs are for tokens that look at each other; take style matrix")
    weights, count = map_.mean().layers[0].weights[0], len(map_.queries.tokens)
    if count > MAX_CELLS:
        raise ValueError(f"{count} tokens are too many for arcs: at most {MAX_CELLS}")
    figure = Figure(figsize=(1.2 + 0.62 * count, 1.2 + 0.4 * count), layout="constrained")
    axes = figure.subplots()
    for q, k in np.argwhere(weights > MIN_ARC_WEIGHT).tolist():
        if q == k:
            continue
        angles = (0, 180) if k < q else (180, 360)
        weight = float(weights[q, k])
        center, diameter = ((q + k) / 2, 0.0), abs(q - k)
        arc = Arc(center, diameter, diameter, theta1=angles[0], theta2=angles[1])
        arc.set(color="#21918c", alpha=min(1.0, 0.1 + 0.9 * weight), linewidth=0.5 + 3 * weight)
        axes.add_patch(arc)
    for position, token in enumerate(map_.queries.tokens):
        text = axes.text(position, 0, label(token, 12), ha="center", va="center", fontsize="small")
        text.set_parse_math(False)
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    half_height = (
        max((abs(q - k) for q, k in np.argwhere(weights > MIN_ARC_WEIGHT).tolist()), default=1) / 2
        + 0.5
    )
    axes.set(xlim=(-0.8, count - 0.2), ylim=(-half_height, half_height), aspect="equal")
    axes.set_axis_off()
    set_title(axes, map_.title)
    return figure
