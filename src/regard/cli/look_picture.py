"""What a run looked at in a picture: for `regard look`, in the terminal and as a record."""

import io

import numpy as np

from regard.corpora.pictures import Picture, Pixels
from regard.train.image import ImageRun
from regard.view.grid import Colour, grids, thumbnail
from regard.view.map import AttentionMap
from regard.view.terminal import Surface, scale

TOLD = 3  # classes


def patches(run: ImageRun, picture: Picture, surface: Surface, layer: int | None = None) -> str:
    """The verdict, the picture, and what the class token looked at: layers, then heads of one."""
    seen = {name: one.numpy() for name, one in run.task.by_patch(picture).items()}
    chosen = len(seen) if layer is None else layer
    if not 1 <= chosen <= len(seen):
        raise ValueError(f"--layer must be from 1 to {len(seen)}, not {layer}")
    heads = [*seen.values()][chosen - 1]
    means = {f"layer {n}": one.mean(0).tolist() for n, one in enumerate(seen.values(), 1)}
    each = {f"head {n}": one.tolist() for n, one in enumerate(heads, 1)}
    top = max(max(map(max, rows)) for rows in [*means.values(), *each.values()]) or 1.0
    itself = f"the class token looked at itself for {1 - heads.sum((1, 2)).mean():.0%}"
    verdict = run(picture)
    best = sorted(verdict.probabilities.items(), key=lambda pair: -pair[1])[:TOLD]
    return "\n\n".join(
        [
            ", ".join(f"{name} {share:.1%}" for name, share in best),
            thumbnail(coarse(run.task.pictures.read(picture), heads.shape[1:]), surface),
            f"The mean of the heads, by layer:\n\n{grids(means, surface, top)}",
            f"Layer {chosen}, by head ({itself}):\n\n{grids(each, surface, top)}",
            f"weight: {scale(surface, round(top, 3))}",
        ]
    )


def coarse(pixels: Pixels, grid: tuple[int, ...]) -> list[list[Colour]]:
    """The mean colour of each patch."""
    rows, columns = grid
    cut = pixels.reshape(rows, pixels.shape[0] // rows, columns, pixels.shape[1] // columns, -1)
    means = np.broadcast_to(cut.mean((1, 3)), (rows, columns, 3))
    return [[(one[0], one[1], one[2]) for one in row] for row in means.tolist()]


def map_of_picture(run: ImageRun, picture: Picture) -> AttentionMap:
    """Every layer and head: what the class token looked at, by rows and columns of patches."""
    seen = run.task.by_patch(picture)
    rows, columns = next(iter(seen.values())).shape[1:]
    return AttentionMap(
        seen,
        [f"row {n}" for n in range(1, rows + 1)],
        [f"column {n}" for n in range(1, columns + 1)],
        kind="grid",
        title=f"{run(picture).label}: {picture}",
        picture=png(run.task.pictures.read(picture)),
    )


def png(pixels: Pixels) -> bytes:
    """A picture as the bytes of a file."""
    from PIL import Image

    packed = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(packed, "PNG")
    return packed.getvalue()
