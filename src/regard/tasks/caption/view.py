"""Attention maps and terminal text of captions."""

from pathlib import Path
from typing import TYPE_CHECKING

from regard.data.formats.images import ImageLike, Pixels
from regard.tasks.picture_tools import patch_colors, png_bytes
from regard.view.attention_map import AttentionMap
from regard.view.grid import render_grids, render_thumbnail
from regard.view.terminal import Surface, render_legend

if TYPE_CHECKING:
    from regard.tasks.caption.task import CaptionAttention, CaptionTask


def caption_map(task: "CaptionTask", picture: ImageLike, target: str | None = None) -> AttentionMap:
    """Return a layer for each word: its attention by rows and columns of places."""
    caption, attention = caption_and_attention(task, picture, target)
    rows, columns = attention.weights.shape[1:]
    return AttentionMap(
        {f"{n} {word}": attention.weights[n - 1] for n, word in enumerate(attention.words, 1)},
        [f"row {n}" for n in range(1, rows + 1)],
        [f"column {n}" for n in range(1, columns + 1)],
        kind="grid",
        title=f"{caption}: {picture}" if isinstance(picture, str | Path) else caption,
        picture=png_bytes(task.pictures.read(picture)),
    )


def render_caption(
    task: "CaptionTask", picture: ImageLike, surface: Surface, target: str | None = None
) -> str:
    """Return the caption, the picture, and a small map for each word."""
    caption, attention = caption_and_attention(task, picture, target)
    maps = {
        f"{n} {word}": attention.weights[n - 1].tolist()
        for n, word in enumerate(attention.words, 1)
    }
    max_weight = float(attention.weights.max()) or 1.0
    rows, columns = attention.weights.shape[1:]
    pixels = cropped_to_grid(task.pictures.read(picture), (rows, columns))
    return "\n\n".join(
        [
            caption,
            render_thumbnail(patch_colors(pixels, (rows, columns)), surface),
            render_grids(maps, surface, max_weight),
            f"weight: {render_legend(surface, round(max_weight, 3))}",
        ]
    )


def cropped_to_grid(pixels: Pixels, grid: tuple[int, int]) -> Pixels:
    """Return the pixels without the last rows and columns that fill no place."""
    rows, columns = grid
    height, width = pixels.shape[:2]
    return pixels[: height // rows * rows, : width // columns * columns]


def caption_and_attention(
    task: "CaptionTask", picture: ImageLike, target: str | None
) -> tuple[str, "CaptionAttention"]:
    """Return the model's best caption, or the given one, and the attention of its words."""
    _ = task.cross_attentions  # an error if there is nothing to show
    if target is None:
        best = task.decode([picture])[0].best
        return best.text, task.caption_attention(picture, best.ids)
    return target, task.caption_attention(picture, task.text.encode_ids([target])[0])
