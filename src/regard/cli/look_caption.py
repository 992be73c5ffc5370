"""Where a run looked in a picture, word by word: for `regard look`, as text and in files."""

from pathlib import Path

from regard.cli.look_picture import patch_colors, png_bytes
from regard.data.formats.images import ImageLike, Pixels
from regard.tasks.caption import CaptionAttention
from regard.train.caption import CaptionRun
from regard.view.attention_map import AttentionMap
from regard.view.grid import render_grids, render_thumbnail
from regard.view.terminal import Surface, render_legend


def render_caption(
    run: CaptionRun, picture: ImageLike, surface: Surface, target: str | None = None
) -> str:
    """The caption, the picture, and a small map for each word."""
    caption, attention = caption_and_attention(run, picture, target)
    maps = {
        f"{n} {word}": attention.weights[n - 1].tolist()
        for n, word in enumerate(attention.words, 1)
    }
    max_weight = float(attention.weights.max()) or 1.0
    rows, columns = attention.weights.shape[1:]
    pixels = cropped_to_grid(run.task.pictures.read(picture), (rows, columns))
    return "\n\n".join(
        [
            caption,
            render_thumbnail(patch_colors(pixels, (rows, columns)), surface),
            render_grids(maps, surface, max_weight),
            f"weight: {render_legend(surface, round(max_weight, 3))}",
        ]
    )


def cropped_to_grid(pixels: Pixels, grid: tuple[int, int]) -> Pixels:
    """Without the last pixels, of which no whole place is left."""
    rows, columns = grid
    height, width = pixels.shape[:2]
    return pixels[: height // rows * rows, : width // columns * columns]


def caption_map(run: CaptionRun, picture: ImageLike, target: str | None = None) -> AttentionMap:
    """A layer for each word: what it looked at, by rows and columns of places."""
    caption, attention = caption_and_attention(run, picture, target)
    rows, columns = attention.weights.shape[1:]
    return AttentionMap(
        {f"{n} {word}": attention.weights[n - 1] for n, word in enumerate(attention.words, 1)},
        [f"row {n}" for n in range(1, rows + 1)],
        [f"column {n}" for n in range(1, columns + 1)],
        kind="grid",
        title=f"{caption}: {picture}" if isinstance(picture, str | Path) else caption,
        picture=png_bytes(run.task.pictures.read(picture)),
    )


def caption_and_attention(
    run: CaptionRun, picture: ImageLike, target: str | None
) -> tuple[str, CaptionAttention]:
    """A caption (the model's own, unless there is another) and where its words looked."""
    if not run.model.cross_attentions:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    if target is None:
        best = run(picture)
        return best.text, run.task.caption_attention(picture, best.ids)
    return target, run.task.caption_attention(picture, run.task.text.encode_ids([target])[0])
