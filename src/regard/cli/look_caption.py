"""Where a run looked in a picture, word by word: for `regard look`, as text and in files."""

from pathlib import Path

from regard.cli.look_picture import coarse, png
from regard.corpora.pictures import Picture, Pixels
from regard.tasks.caption import Look
from regard.train.caption import CaptionRun
from regard.view.grid import grids, thumbnail
from regard.view.map import AttentionMap
from regard.view.terminal import Surface, scale


def worded(run: CaptionRun, picture: Picture, surface: Surface, target: str | None = None) -> str:
    """The caption, the picture, and a small map for each word."""
    caption, seen = looked(run, picture, target)
    maps = {f"{n} {word}": seen.weights[n - 1].tolist() for n, word in enumerate(seen.words, 1)}
    top = float(seen.weights.max()) or 1.0
    rows, columns = seen.weights.shape[1:]
    pixels = whole(run.task.pictures.read(picture), (rows, columns))
    return "\n\n".join(
        [
            caption,
            thumbnail(coarse(pixels, (rows, columns)), surface),
            grids(maps, surface, top),
            f"weight: {scale(surface, round(top, 3))}",
        ]
    )


def whole(pixels: Pixels, grid: tuple[int, int]) -> Pixels:
    """Without the last pixels, of which no whole place is left."""
    rows, columns = grid
    height, width = pixels.shape[:2]
    return pixels[: height // rows * rows, : width // columns * columns]


def map_of_caption(run: CaptionRun, picture: Picture, target: str | None = None) -> AttentionMap:
    """A layer for each word: what it looked at, by rows and columns of places."""
    caption, seen = looked(run, picture, target)
    rows, columns = seen.weights.shape[1:]
    return AttentionMap(
        {f"{n} {word}": seen.weights[n - 1] for n, word in enumerate(seen.words, 1)},
        [f"row {n}" for n in range(1, rows + 1)],
        [f"column {n}" for n in range(1, columns + 1)],
        kind="grid",
        title=f"{caption}: {picture}" if isinstance(picture, str | Path) else caption,
        picture=png(run.task.pictures.read(picture)),
    )


def looked(run: CaptionRun, picture: Picture, target: str | None) -> tuple[str, Look]:
    """A caption (the model's own, unless there is another) and where its words looked."""
    if not run.model.cross:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    if target is None:
        best = run(picture)
        return best.text, run.task.look(picture, best.ids)
    return target, run.task.look(picture, run.task.text.ids([target])[0])
