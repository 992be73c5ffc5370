"""Attention maps and terminal text of image classification."""

from typing import TYPE_CHECKING

from regard.data.formats.images import ImageLike
from regard.errors import InputError
from regard.tasks.image_tools import patch_colors, png_bytes
from regard.view.attention_map import AttentionMap
from regard.view.grid import render_grids, render_thumbnail
from regard.view.structure import scale_top
from regard.view.terminal import Surface, render_legend

if TYPE_CHECKING:
    from regard.tasks.image.task import ImageTask

MAX_CLASSES = 3  # of the text


def image_map(task: "ImageTask", image: ImageLike) -> AttentionMap:
    """Return the attention of the class token to rows and columns of patches, by layer and head."""
    pixels = task.images.read(image)
    weights_by_layer = task.patch_attention_weights(pixels)
    rows, columns = next(iter(weights_by_layer.values())).shape[1:]
    [prediction] = task.predict([{"image": pixels}])
    return AttentionMap(
        weights_by_layer,
        [f"row {n}" for n in range(1, rows + 1)],
        [f"column {n}" for n in range(1, columns + 1)],
        kind="grid",
        title=f"{prediction.label}: {image}",
        image=png_bytes(pixels),
        reader="the class token",
    )


def render_image(
    task: "ImageTask", image: ImageLike, surface: Surface, layer: int | None = None
) -> str:
    """Return the likeliest classes, the image, and the attention of the class token.

    Layers are averaged over heads. `layer`, or the last layer, is also shown head by head.
    """
    pixels = task.images.read(image)
    weights_by_layer = {
        name: weights.numpy() for name, weights in task.patch_attention_weights(pixels).items()
    }
    layer_number = len(weights_by_layer) if layer is None else layer
    if not 1 <= layer_number <= len(weights_by_layer):
        raise InputError(f"--layer must be from 1 to {len(weights_by_layer)}, not {layer}")
    heads = [*weights_by_layer.values()][layer_number - 1]
    layer_means = {
        f"layer {n}": weights.mean(0).tolist()
        for n, weights in enumerate(weights_by_layer.values(), 1)
    }
    head_maps = {f"head {n}": weights.tolist() for n, weights in enumerate(heads, 1)}
    max_weight = scale_top(
        max(max(map(max, rows)) for rows in [*layer_means.values(), *head_maps.values()]),
        1 / heads[0].size,
    )
    self_weight = f"the class token has {1 - heads.sum((1, 2)).mean():.0%} of its own attention"
    [prediction] = task.predict([{"image": pixels}])
    top_classes = sorted(prediction.probabilities.items(), key=lambda pair: -pair[1])[:MAX_CLASSES]
    return "\n\n".join(
        [
            ", ".join(f"{name} {share:.1%}" for name, share in top_classes),
            render_thumbnail(patch_colors(pixels, heads.shape[1:]), surface),
            f"Mean of the heads, by layer:\n\n{render_grids(layer_means, surface, max_weight)}",
            (
                f"Layer {layer_number}, by head "
                f"({self_weight}):\n\n{render_grids(head_maps, surface, max_weight)}"
            ),
            f"weight: {render_legend(surface, round(max_weight, 3))}",
        ]
    )
