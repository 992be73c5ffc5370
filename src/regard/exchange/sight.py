"""What a folder of a model of pictures has beside the encoder: classes, a head, and how it reads.

config.json: id2label, label2id   model.safetensors: classifier   preprocessor_config.json
"""

from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from regard.exchange.config import CONFIG, read_object

HEAD = "classifier"
PREPARED = "preprocessor_config.json"
KEYS = {"mean": "image_mean", "std": "image_std"}


class Sight(NamedTuple):
    """`labels` in their order, the `weight` and `bias` of the layer that tells them, and what is
    taken from pixels (0 to 1), and what they are divided by."""

    labels: tuple[str, ...]
    head: dict[str, Tensor]
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)


def taken_off(folder: Path, tensors: dict[str, Tensor]) -> Sight:
    """The head out of the tensors of a folder; an encoder alone has none, and no labels."""
    head = {part: tensors.pop(f"{HEAD}.{part}", None) for part in ("weight", "bias")}
    there = {part: tensor for part, tensor in head.items() if tensor is not None}
    labels: tuple[str, ...] = ()
    if there:
        named = read_object(folder / CONFIG).get("id2label")
        if not isinstance(named, dict) or sorted(named, key=str) != sorted(
            map(str, range(len(named)))
        ):
            raise ValueError(f"{folder / CONFIG}: id2label must name the classes, from 0")
        labels = tuple(str(named[str(number)]) for number in range(len(named)))
        shapes = {part: tuple(tensor.shape) for part, tensor in there.items()}
        if set(there) != {"weight", "bias"} or any(s[0] != len(labels) for s in shapes.values()):
            raise ValueError(f"{folder}: {HEAD} of shapes {shapes} for {len(labels)} labels")
    reading = {}
    if (folder / PREPARED).is_file():
        told = read_object(folder / PREPARED)
        reading = {ours: values(told[k], folder, k) for ours, k in KEYS.items() if k in told}
    return Sight(labels, there, **reading)


def values(given: Any, folder: Path, key: str) -> tuple[float, ...]:
    several = given if isinstance(given, list) else [given]
    if not several or not all(isinstance(one, int | float) for one in several):
        raise ValueError(f"{folder / PREPARED}: {key} must be numbers, not {given!r}")
    return tuple(map(float, several))


def config_of(seen: Sight) -> dict[str, Any]:
    """What config.json says of the classes."""
    if not seen.head:
        return {}
    return {
        "architectures": ["ViTForImageClassification"],
        "id2label": {str(number): label for number, label in enumerate(seen.labels)},
        "label2id": {label: number for number, label in enumerate(seen.labels)},
    }


def prepared(size: int, seen: Sight) -> dict[str, Any]:
    """What their image processor does before the model: the same as ours."""
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_resize": True,
        "resample": 2,
        "size": {"height": size, "width": size},
        "do_normalize": True,
        "image_mean": list(seen.mean),
        "image_std": list(seen.std),
    }
