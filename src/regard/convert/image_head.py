"""What a folder of a model of images has beside the encoder: classes, a head, and how it reads.

config.json: id2label, label2id   model.safetensors: classifier   preprocessor_config.json
"""

from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from regard.convert.config import CONFIG_FILE, read_json_object

HEAD_PREFIX = "classifier"
PREPROCESSOR_FILE = "preprocessor_config.json"
PREPROCESSOR_KEYS = {"mean": "image_mean", "std": "image_std"}


class ImageHead(NamedTuple):
    """`labels` in their order, the `weight` and `bias` of the layer that tells them, and what is
    taken from pixels (0 to 1), and what they are divided by."""

    labels: tuple[str, ...]
    head: dict[str, Tensor]
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)


def pop_image_head(folder: Path, tensors: dict[str, Tensor]) -> ImageHead:
    """The head out of the tensors of a folder; an encoder alone has none, and no labels."""
    head = {part: tensors.pop(f"{HEAD_PREFIX}.{part}", None) for part in ("weight", "bias")}
    present = {part: tensor for part, tensor in head.items() if tensor is not None}
    labels: tuple[str, ...] = ()
    if present:
        id2label = read_json_object(folder / CONFIG_FILE).get("id2label")
        if not isinstance(id2label, dict) or sorted(id2label, key=str) != sorted(
            map(str, range(len(id2label)))
        ):
            raise ValueError(f"{folder / CONFIG_FILE}: id2label must name the classes, from 0")
        labels = tuple(str(id2label[str(number)]) for number in range(len(id2label)))
        shapes = {part: tuple(tensor.shape) for part, tensor in present.items()}
        if set(present) != {"weight", "bias"} or any(s[0] != len(labels) for s in shapes.values()):
            raise ValueError(f"{folder}: {HEAD_PREFIX} of shapes {shapes} for {len(labels)} labels")
    normalization = {}
    if (folder / PREPROCESSOR_FILE).is_file():
        preprocessor = read_json_object(folder / PREPROCESSOR_FILE)
        normalization = {
            ours: channel_values(preprocessor[k], folder, k)
            for ours, k in PREPROCESSOR_KEYS.items()
            if k in preprocessor
        }
    return ImageHead(labels, present, **normalization)


def channel_values(value: Any, folder: Path, key: str) -> tuple[float, ...]:
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(isinstance(number, int | float) for number in numbers):
        raise ValueError(f"{folder / PREPROCESSOR_FILE}: {key} must be numbers, not {value!r}")
    return tuple(map(float, numbers))


def label_config(image_head: ImageHead) -> dict[str, Any]:
    """What config.json says of the classes."""
    if not image_head.head:
        return {}
    return {
        "architectures": ["ViTForImageClassification"],
        "id2label": {str(number): label for number, label in enumerate(image_head.labels)},
        "label2id": {label: number for number, label in enumerate(image_head.labels)},
    }


def preprocessor_config(size: int, image_head: ImageHead) -> dict[str, Any]:
    """What their image processor does before the model: the same as ours."""
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_resize": True,
        "resample": 2,
        "size": {"height": size, "width": size},
        "do_normalize": True,
        "image_mean": list(image_head.mean),
        "image_std": list(image_head.std),
    }
