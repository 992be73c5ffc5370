"""Convert tensors of Hugging Face to ours, and back. See `formats.py`."""

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard.convert.formats import ModelFormat, TensorMapping
from regard.errors import InputError
from regard.parsing import read_json_object

WEIGHTS_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin")
CONVERT_COMMAND = (
    'python -c "import torch, safetensors.torch as s; s.save_file({k: v.clone() for k, v in '
    "torch.load('pytorch_model.bin', weights_only=True).items()}, 'model.safetensors')\""
)
MAX_LISTED_NAMES = 3


class TensorLocation(NamedTuple):
    """The name of a tensor in their file, and its mapping."""

    name: str
    mapping: TensorMapping


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a folder, from one file or several, in float32."""
    if (folder / WEIGHTS_FILE).is_file():
        return read_tensor_file(folder / WEIGHTS_FILE)
    if (folder / INDEX_FILE).is_file():
        file_by_tensor = read_json_object(folder / INDEX_FILE).get("weight_map")
        if not isinstance(file_by_tensor, dict) or not all(
            isinstance(p, str) for p in file_by_tensor.values()
        ):
            raise InputError(f"{folder / INDEX_FILE}: weight_map must name the file of each tensor")
        tensors: dict[str, Tensor] = {}
        for file_name in sorted(set(file_by_tensor.values())):
            if Path(file_name).name != file_name:
                raise InputError(
                    f"{folder / INDEX_FILE}: {file_name!r} is not a file of this folder"
                )
            tensors |= read_tensor_file(folder / file_name)
        return tensors
    if any((folder / name).exists() for name in PICKLE_FILES):
        raise InputError(
            f"{folder}: the weights are a pickle, which may contain code and is never loaded; "
            f"if you trust it, convert it in that folder: {CONVERT_COMMAND}"
        )
    raise InputError(f"{folder / WEIGHTS_FILE}: is missing; give a folder with safetensors")


def read_tensor_file(path: Path) -> dict[str, Tensor]:
    try:
        tensors = safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise InputError(f"{path}: is missing, but {INDEX_FILE} names it") from None
    except safetensors.SafetensorError as error:
        raise InputError(f"{path}: is damaged ({error}); download it again") from None
    return {
        name: tensor.to(torch.float32) if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }


def without_prefix(model_format: ModelFormat, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(model_format.prefix): tensor for name, tensor in tensors.items()}


def from_hugging_face(
    model_format: ModelFormat,
    tensors: Mapping[str, Tensor],
    expected_shapes: Mapping[str, torch.Size],
    folder: Path,
) -> dict[str, Tensor]:
    """Convert tensors without prefix to ours, which must have the expected shapes."""
    locations = {ours: locate_tensor(model_format, ours) for ours in expected_shapes}
    missing = [p.name for p in locations.values() if p.name not in tensors]
    raise_if_any(folder, "are missing", dict.fromkeys(missing))
    weights: dict[str, Tensor] = {}
    mismatches: list[str] = []
    for ours, location in locations.items():
        tensor = extract_tensor(tensors[location.name], location.mapping)
        if tensor is None or tensor.shape != expected_shapes[ours]:
            shape, expected = list(tensors[location.name].shape), list(expected_shapes[ours])
            mismatches.append(f"{location.name} (is {shape}, should be {expected})")
        else:
            weights[ours] = tensor
    raise_if_any(folder, "do not have the shapes of config.json", mismatches)
    check_values(folder, {location.name: weights[ours] for ours, location in locations.items()})
    used = {location.name for location in locations.values()}
    raise_if_any(folder, "are unknown", list(unexpected_names(model_format, tensors, used)))
    words = weights[model_format.embedding_name]
    untied = [
        name
        for name in model_format.tied_names
        if name in tensors and not equal_tensors(tensors[name], words)
    ]
    raise_if_any(folder, "differ from the word embeddings, which is not supported", untied)
    return weights


def check_values(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors of whole numbers, as of a quantized model, and values that are not finite."""
    integers = [name for name, tensor in tensors.items() if not tensor.is_floating_point()]
    raise_if_any(folder, "are whole numbers, but quantized models are not supported", integers)
    infinite = [name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())]
    raise_if_any(folder, "contain NaN or infinite values", infinite)


def unexpected_names(
    model_format: ModelFormat, tensors: Collection[str], used: Collection[str]
) -> Iterator[str]:
    for name in tensors:
        is_known = name in used or name in model_format.tied_names
        if not is_known and not any(
            fnmatchcase(name, pattern) for pattern in model_format.ignored_patterns
        ):
            yield name


def equal_tensors(tensor: Tensor, other: Tensor) -> bool:
    return tensor.shape == other.shape and torch.equal(tensor, other)


def to_hugging_face(model_format: ModelFormat, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert our tensors to theirs, with prefix."""
    exported: dict[str, Tensor] = {}
    chunks: dict[str, dict[int, Tensor]] = {}
    for ours, tensor in weights.items():
        name, mapping = locate_tensor(model_format, ours)
        value = tensor.detach()
        if mapping.transposed and value.ndim == 2:
            value = value.T
        if mapping.skip_rows:
            value = torch.cat([value.new_zeros(mapping.skip_rows, value.shape[1]), value])
        if mapping.chunk is None:
            exported[name] = value.reshape(*[1] * mapping.leading_axes, *value.shape)
        else:
            chunks.setdefault(name, {})[mapping.chunk] = value
    for name, by_chunk in chunks.items():
        exported[name] = torch.cat([by_chunk[chunk] for chunk in sorted(by_chunk)], -1)
    prefixed = {
        name if name.startswith(model_format.head_prefixes) else model_format.prefix + name: tensor
        for name, tensor in exported.items()
    }
    return {name: tensor.contiguous() for name, tensor in prefixed.items()}


def extract_tensor(tensor: Tensor, mapping: TensorMapping) -> Tensor | None:
    """Convert their tensor to ours; None if the shape does not fit."""
    if mapping.chunk is not None:
        if tensor.shape[-1] % 3:
            return None
        tensor = tensor.chunk(3, -1)[mapping.chunk]
    if mapping.leading_axes:
        if tensor.shape[: mapping.leading_axes] != (1,) * mapping.leading_axes:
            return None
        tensor = tensor.reshape(tensor.shape[mapping.leading_axes :])
    if mapping.transposed and tensor.ndim == 2:
        tensor = tensor.T
    return tensor[mapping.skip_rows :].contiguous()


def locate_tensor(model_format: ModelFormat, ours: str) -> TensorLocation:
    for mapping in model_format.tensors:
        pattern = re.escape(mapping.ours).replace(r"\{i\}", r"(?P<i>\d+)")
        match = re.fullmatch(pattern.replace(r"\*", r"(?P<kind>weight|bias)"), ours)
        if match is not None:
            groups = match.groupdict()
            name = mapping.theirs.replace("{i}", groups.get("i", ""))
            return TensorLocation(name.replace("*", groups.get("kind", "")), mapping)
    raise InputError(
        f"{ours}: {model_format.prefix.rstrip('.')} of Hugging Face has no such tensor"
    )


def raise_if_any(folder: Path, problem: str, names: Collection[str]) -> None:
    if not names:
        return
    first = ", ".join(list(names)[:MAX_LISTED_NAMES])
    rest = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    raise InputError(f"{folder}: tensors {problem}: {first}{rest}")
