"""What a run looked at in a picture: for `regard look`, in the terminal and as a record."""

import io

import numpy as np

from regard.data.formats.images import ImageLike, Pixels
from regard.train.image import ImageRun
from regard.view.attention_map import AttentionMap
from regard.view.grid import RgbColor, render_grids, render_thumbnail
from regard.view.terminal import Surface, render_legend

MAX_CLASSES = 3  # classes


def render_image(
    run: ImageRun, picture: ImageLike, surface: Surface, layer: int | None = None
) -> str:
    """The verdict, the picture, and what the class token looked at: layers, then heads of one."""
    weights_by_layer = {
        name: weights.numpy() for name, weights in run.task.patch_attention_weights(picture).items()
    }
    layer_number = len(weights_by_layer) if layer is None else layer
    if not 1 <= layer_number <= len(weights_by_layer):
        raise ValueError(f"--layer must be from 1 to {len(weights_by_layer)}, not {layer}")
    heads = [*weights_by_layer.values()][layer_number - 1]
    layer_means = {
        f"layer {n}": weights.mean(0).tolist()
        for n, weights in enumerate(weights_by_layer.values(), 1)
    }
    head_maps = {f"head {n}": weights.tolist() for n, weights in enumerate(heads, 1)}
    max_weight = (
        max(max(map(max, rows)) for rows in [*layer_means.values(), *head_maps.values()]) or 1.0
    )
    self_attention_note = f"the class token looked at itself for {1 - heads.sum((1, 2)).mean():.0%}"
    prediction = run(picture)
    top_classes = sorted(prediction.probabilities.items(), key=lambda pair: -pair[1])[:MAX_CLASSES]
    return "\n\n".join(
        [
            ", ".join(f"{name} {share:.1%}" for name, share in top_classes),
            render_thumbnail(
                patch_colors(run.task.pictures.read(picture), heads.shape[1:]), surface
            ),
            f"The mean of the heads, by layer:\n\n{render_grids(layer_means, surface, max_weight)}",
            (
                f"Layer {layer_number}, by head "
                f"({self_attention_note}):\n\n{render_grids(head_maps, surface, max_weight)}"
            ),
            f"weight: {render_legend(surface, round(max_weight, 3))}",
        ]
    )


def patch_colors(pixels: Pixels, grid: tuple[int, ...]) -> list[list[RgbColor]]:
    """The mean colour of each patch."""
    rows, columns = grid
    patches = pixels.reshape(rows, pixels.shape[0] // rows, columns, pixels.shape[1] // columns, -1)
    means = np.broadcast_to(patches.mean((1, 3)), (rows, columns, 3))
    return [[(color[0], color[1], color[2]) for color in row] for row in means.tolist()]


def image_map(run: ImageRun, picture: ImageLike) -> AttentionMap:
    """Every layer and head: what the class token looked at, by rows and columns of patches."""
    weights_by_layer = run.task.patch_attention_weights(picture)
    rows, columns = next(iter(weights_by_layer.values())).shape[1:]
    return AttentionMap(
        weights_by_layer,
        [f"row {n}" for n in range(1, rows + 1)],
        [f"column {n}" for n in range(1, columns + 1)],
        kind="grid",
        title=f"{run(picture).label}: {picture}",
        picture=png_bytes(run.task.pictures.read(picture)),
    )


def png_bytes(pixels: Pixels) -> bytes:
    """A picture as the bytes of a file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(buffer, "PNG")
    return buffer.getvalue()
