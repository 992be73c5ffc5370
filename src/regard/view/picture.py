"""Plots of attention maps as png, svg or pdf. Styles:

matrix    the mean of all heads, one row per query
heads     a small matrix for each layer and head
bars      the mean weight of each key
arcs      tokens in a row, with arcs from queries to keys
text      a document with shaded words and sentences
strip     an image for each word of a caption
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError
from regard.view.attention_map import AttentionLayer, AttentionMap
from regard.view.chart import CELL_INCHES, MAX_CELLS, figure_bytes, label_axes, set_title
from regard.view.structure import scale_top
from regard.view.terminal import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PictureFormat = Literal["png", "svg", "pdf"]
PictureStyle = Literal["matrix", "heads", "bars", "arcs", "text", "strip"]
THUMBNAIL_INCHES = 1.1  # side of a head
MAX_ENLARGED_HEADS = 4  # up to this number, heads are drawn twice as large
MAPS_PER_ROW = 8
MAX_LAYER_CELLS = 28  # width of the name of a layer
DOCUMENT_LINE_LENGTH = 84  # characters
MIN_ARC_WEIGHT = 0.03  # smaller weights have no arc


def picture_bytes(
    map_: AttentionMap, file_format: PictureFormat = "png", style: PictureStyle | None = None
) -> bytes:
    """Return the plot of a map; the default style depends on the kind of the map."""
    if style is None:
        style = default_style(map_)
    if style not in get_args(PictureStyle):
        raise InputError(f"style must be one of {', '.join(get_args(PictureStyle))}, not {style!r}")
    builders = {
        "matrix": matrix_figure,
        "heads": head_grid_figure,
        "bars": bar_figure,
        "arcs": arc_figure,
    }
    build_figure = {**builders, "text": document_figure, "strip": strip_figure}[style]
    return figure_bytes(build_figure(map_), file_format)


def default_style(map_: AttentionMap) -> PictureStyle:
    """Return the style for the kind of a map and its number of heads."""
    heads, kind = [layer.heads for layer in map_.layers], map_.layers[0].kind
    if kind == "grid":
        return "strip" if len(heads) > 1 and max(heads) == 1 else "heads"
    if kind == "pool" and len(map_.queries.tokens) > 1:
        return "text"
    return "heads" if sum(heads) > 1 else "bars" if kind == "pool" else "matrix"


def matrix_figure(map_: AttentionMap) -> "Figure":
    """Draw the mean of all heads: one row per query, one column per key."""
    from matplotlib.figure import Figure

    weights = map_.mean().layers[0].weights[0]
    down, across = weights.shape
    if max(down, across) > MAX_CELLS:
        raise InputError(
            f"a plot shows at most {MAX_CELLS} tokens per side, not {down} x {across}; "
            "save a page (.html)"
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
    """Draw frames around gold links; possible links are dashed."""
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
    """Draw a row for each layer with its heads side by side, without tokens."""
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
        name = label(layer.label, MAX_LAYER_CELLS)
        row[0].set_ylabel(name, fontsize="small", rotation=0, ha="right", parse_math=False)
    figure.suptitle(label(map_.title, 90), fontsize="medium", parse_math=False)
    return figure


def draw_head(
    axes: "Axes", layer: AttentionLayer, head: int, background: NDArray[np.float32] | None
) -> None:
    """Draw a head without tokens, over its image if there is one."""
    intensity = np.sqrt(layer.weights[head])  # makes small weights visible, as on the page
    if layer.kind == "grid":  # its patches share one distribution
        top = scale_top(float(layer.weights[head].max()), 1 / max(1, intensity.size))
        intensity = intensity / top**0.5
    if background is None:
        axes.imshow(intensity, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    else:
        down, across = intensity.shape
        axes.imshow(background, extent=(-0.5, across - 0.5, down - 0.5, -0.5), cmap="Greys_r")
        axes.imshow(intensity, cmap="inferno", vmin=0, vmax=1, alpha=0.6)
    axes.set_xticks([])
    axes.set_yticks([])


def strip_figure(map_: AttentionMap) -> "Figure":
    """Draw the mean of the heads of each layer, which is a word of a caption."""
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
        axes.set_title(label(layer.label, 16), fontsize="small", parse_math=False)
    figure.suptitle(label(map_.title, 90), fontsize="medium", parse_math=False)
    return figure


def document_figure(map_: AttentionMap) -> "Figure":
    """Draw a line for each query, which is a sentence: its weight, and its shaded words."""
    from matplotlib.figure import Figure

    weights, tokens = map_.layers[0].weights.mean(0), map_.keys.tokens
    # the last layer has the weights of words times those of their sentences
    sentence_shares = map_.layers[-1].weights.mean(0).sum(-1)
    lines = list[tuple[float, list[tuple[str, float]]]]()
    for row, share in zip(weights, sentence_shares.tolist(), strict=True):
        words = [(label(tokens[k], 16), float(row[k])) for k in np.flatnonzero(row).tolist()]
        parts = list(wrapped_lines(words, DOCUMENT_LINE_LENGTH))
        lines += [(share if not n else -1.0, part) for n, part in enumerate(parts)]
    if len(lines) > MAX_CELLS:
        raise InputError(
            f"a plot shows at most {MAX_CELLS} lines, not {len(lines)}; save a page (.html)"
        )
    figure = Figure(figsize=(8.4, 0.7 + 0.3 * len(lines)), layout="constrained")
    even_weight = 1 / max(1, int((weights > 0).sum(-1).max(initial=0)))
    axes, top = figure.subplots(), scale_top(float(weights.max(initial=0)), even_weight)
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
    """Yield lines of at most `width` characters."""
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
    """Draw monospaced text on a background with the opacity of the level."""
    artist = axes.text(x, y, text, family="monospace", fontsize=10, va="center")
    artist.set_parse_math(False)
    artist.set_bbox({"facecolor": color, "alpha": 0.75 * level, "edgecolor": "none", "pad": 1.2})


def decode_png(png: bytes) -> NDArray[np.float32]:
    from matplotlib.image import imread

    return imread(BytesIO(png), format="png")


def bar_figure(map_: AttentionMap) -> "Figure":
    """Draw the mean weight of each key over all queries."""
    from matplotlib.figure import Figure

    token_weights = map_.mean().layers[0].weights[0].mean(0)
    if len(token_weights) > MAX_CELLS:
        raise InputError(
            f"a plot shows at most {MAX_CELLS} bars, not {len(token_weights)}; save a page (.html)"
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
    """Draw tokens in a row, with arcs to earlier keys above and to later keys below."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Arc

    if map_.queries.tokens != map_.keys.tokens:
        raise InputError("arcs need self-attention; use the style matrix")
    weights, count = map_.mean().layers[0].weights[0], len(map_.queries.tokens)
    if count > MAX_CELLS:
        raise InputError(
            f"a plot shows at most {MAX_CELLS} tokens, not {count}; save a page (.html)"
        )
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
