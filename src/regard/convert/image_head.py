"""The classifier in a folder of an image model: classes, weights, and normalization of pixels.

config.json: id2label, label2id   model.safetensors: classifier   preprocessor_config.json
"""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from regard.convert.config import CONFIG_FILE
from regard.convert.weights import check_values
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import read_json_object

HEAD_PREFIX = "classifier"
PREPROCESSOR_FILE = "preprocessor_config.json"
PREPROCESSOR_KEYS = {"mean": "image_mean", "std": "image_std"}


class ImageHead(NamedTuple):
    """A classifier of images: its labels in order, the `weight` and `bias` of the output layer.

    `mean` and `std` normalize pixels, which range from 0 to 1.
    """

    labels: tuple[str, ...]
    head: dict[str, Tensor]
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)


def pop_image_head(folder: Path, tensors: dict[str, Tensor]) -> ImageHead:
    """Remove the classifier from the tensors of a folder, and return it.

    An encoder alone has neither tensors for it nor labels.
    """
    head = {part: tensors.pop(f"{HEAD_PREFIX}.{part}", None) for part in ("weight", "bias")}
    present = {part: tensor for part, tensor in head.items() if tensor is not None}
    labels: tuple[str, ...] = ()
    if present:
        check_values(folder, {f"{HEAD_PREFIX}.{part}": tensor for part, tensor in present.items()})
        labels = read_labels(folder, max(t.shape[0] if t.ndim else 0 for t in present.values()))
        shapes = {part: tuple(tensor.shape) for part, tensor in present.items()}
        is_complete = [len(shapes.get(part, ())) for part in ("weight", "bias")] == [2, 1]
        if not is_complete or any(shape[0] != len(labels) for shape in shapes.values()):
            raise InputError(
                f"{folder}: the shapes of {HEAD_PREFIX} ({shapes}) do not fit {len(labels)} labels"
            )
    normalization = {}
    if (folder / PREPROCESSOR_FILE).is_file():
        preprocessor = read_json_object(folder / PREPROCESSOR_FILE)
        normalization = {
            ours: channel_values(preprocessor[k], folder, k)
            for ours, k in PREPROCESSOR_KEYS.items()
            if k in preprocessor
        }
    return ImageHead(labels, present, **normalization)


def read_labels(folder: Path, classes: int) -> tuple[str, ...]:
    """Return the names of the classes; transformers writes no default names for two classes."""
    id2label = read_json_object(folder / CONFIG_FILE).get("id2label")
    if id2label is None:
        return tuple(f"LABEL_{number}" for number in range(classes))
    if not isinstance(id2label, dict) or set(id2label) != set(map(str, range(len(id2label)))):
        raise InputError(
            f"{folder / CONFIG_FILE}: id2label must have the name of each class, from 0"
        )
    return tuple(str(id2label[str(number)]) for number in range(len(id2label)))


def channel_values(value: object, folder: Path, key: str) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    numbers = tuple(float(number) for number in values if isinstance(number, int | float))
    if not numbers or len(numbers) < len(values):
        raise InputError(f"{folder / PREPROCESSOR_FILE}: {key} must be numbers, not {value!r}")
    return numbers


def label_config(image_head: ImageHead) -> JsonObject:
    """Return the part of config.json about classes."""
    if not image_head.head:
        return {}
    return {
        "architectures": ["ViTForImageClassification"],
        "id2label": {str(number): label for number, label in enumerate(image_head.labels)},
        "label2id": {label: number for number, label in enumerate(image_head.labels)},
    }


def preprocessor_config(size: int, image_head: ImageHead) -> JsonObject:
    """Return preprocessor_config.json for the preprocessing that regard does."""
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
