"""Attention maps and terminal text of captions."""

from pathlib import Path
from typing import TYPE_CHECKING

from regard.data.corpus import Record
from regard.data.formats.images import ImageLike, Pixels
from regard.tasks.image_tools import patch_colors, png_bytes
from regard.view.annotations import MapAnnotations
from regard.view.attention_map import AttentionMap
from regard.view.grid import render_grids, render_thumbnail
from regard.view.structure import scale_top
from regard.view.terminal import Surface, render_legend

if TYPE_CHECKING:
    from regard.tasks.caption.task import CaptionTask


def caption_map(task: "CaptionTask", record: Record, target: str | None = None) -> AttentionMap:
    """Return a layer for each word: its attention to rows and columns of regions."""
    image: ImageLike = record["image"]
    pixels = task.images.read(image)
    caption, ids = caption_and_ids(task, record, target)
    attention = task.caption_attention(pixels, ids)
    rows, columns = attention.weights.shape[1:]
    return AttentionMap(
        {f"{n} {word}": attention.weights[n - 1] for n, word in enumerate(attention.words, 1)},
        [f"row {n}" for n in range(1, rows + 1)],
        [f"column {n}" for n in range(1, columns + 1)],
        kind="grid",
        title=f"{caption}: {image}" if isinstance(image, str | Path) else caption,
        image=png_bytes(pixels),
        annotations=MapAnnotations(choices=task.word_choices(pixels, ids)),
    )


def render_caption(
    task: "CaptionTask", record: Record, surface: Surface, target: str | None = None
) -> str:
    """Return the caption, the image, and a small map for each word."""
    pixels = task.images.read(record["image"])
    caption, ids = caption_and_ids(task, record, target)
    attention = task.caption_attention(pixels, ids)
    maps = {
        f"{n} {word}": attention.weights[n - 1].tolist()
        for n, word in enumerate(attention.words, 1)
    }
    rows, columns = attention.weights.shape[1:]
    max_weight = scale_top(float(attention.weights.max()), 1 / (rows * columns))
    visible_pixels = cropped_to_grid(pixels, (rows, columns))
    return "\n\n".join(
        [
            caption,
            render_thumbnail(patch_colors(visible_pixels, (rows, columns)), surface),
            render_grids(maps, surface, max_weight),
            f"weight: {render_legend(surface, round(max_weight, 3))}",
        ]
    )


def cropped_to_grid(pixels: Pixels, grid: tuple[int, int]) -> Pixels:
    """Return the pixels without the last rows and columns that fill no region."""
    rows, columns = grid
    height, width = pixels.shape[:2]
    return pixels[: height // rows * rows, : width // columns * columns]


def caption_and_ids(
    task: "CaptionTask", record: Record, target: str | None
) -> tuple[str, list[int]]:
    """Return the model's best caption, or the given one, and its ids."""
    _ = task.cross_attentions  # raises an error if there is no attention
    if target is None:
        best = task.predict([record])[0].best
        return best.text, best.ids
    return target, task.text.encode_ids([target])[0]
