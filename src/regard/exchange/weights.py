"""Their tensors under our names, and back."""

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard.exchange.config import read_object
from regard.exchange.table import Format, Name

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin")
CONVERT = (
    'python -c "import torch, safetensors.torch as s; s.save_file({k: v.clone() for k, v in '
    "torch.load('pytorch_model.bin', weights_only=True).items()}, 'model.safetensors')\""
)
SHOWN = 3


class Place(NamedTuple):
    """Where a tensor of ours is in their file."""

    name: str
    how: Name


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, in one file or several, in float32."""
    if (folder / WEIGHTS).is_file():
        return one_file(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        parts = read_object(folder / INDEX).get("weight_map")
        if not isinstance(parts, dict) or not all(isinstance(p, str) for p in parts.values()):
            raise ValueError(f"{folder / INDEX}: weight_map must say the file of each tensor")
        found: dict[str, Tensor] = {}
        for part in sorted(set(parts.values())):
            if Path(part).name != part:
                raise ValueError(f"{folder / INDEX}: {part!r} is not a file of this folder")
            found |= one_file(folder / part)
        return found
    if any((folder / name).exists() for name in PICKLES):
        raise ValueError(
            f"{folder}: the weights are a pickle, which can run any code and is never loaded here; "
            f"if you trust it, convert it there: {CONVERT}"
        )
    raise ValueError(f"{folder / WEIGHTS}: is missing")


def one_file(path: Path) -> dict[str, Tensor]:
    try:
        tensors = safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise ValueError(f"{path}: is missing, but the index names it") from None
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path}: is damaged ({error})") from None
    return {
        name: tensor.to(torch.float32) if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }


def without_prefix(form: Format, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(form.prefix): tensor for name, tensor in tensors.items()}


def to_ours(
    form: Format, tensors: Mapping[str, Tensor], wanted: Mapping[str, torch.Size], where: Path
) -> dict[str, Tensor]:
    """Their tensors (without prefix) as ours, which have the `wanted` shapes."""
    places = {ours: place_of(form, ours) for ours in wanted}
    missing = [p.name for p in places.values() if p.name not in tensors]
    complain(where, "are missing", dict.fromkeys(missing))
    found: dict[str, Tensor] = {}
    wrong: list[str] = []
    for ours, place in places.items():
        one = taken(tensors[place.name], place.how)
        if one is None or one.shape != wanted[ours]:
            shape, want = list(tensors[place.name].shape), list(wanted[ours])
            wrong.append(f"{place.name} (is {shape}, ours would be {want})")
        else:
            found[ours] = one
    complain(where, "have other shapes than config.json says", wrong)
    used = {place.name for place in places.values()}
    complain(where, "are not known", list(extra(form, tensors, used)))
    words = found[form.words]
    own = [name for name in form.tied if name in tensors and not same(tensors[name], words)]
    complain(where, "differ from the table of words, which is not supported", own)
    return found


def extra(form: Format, tensors: Collection[str], used: Collection[str]) -> Iterator[str]:
    for name in tensors:
        known = name in used or name in form.tied
        if not known and not any(fnmatchcase(name, pattern) for pattern in form.ignored):
            yield name


def same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def to_theirs(form: Format, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors under their names, with their prefix."""
    found: dict[str, Tensor] = {}
    parts: dict[str, dict[int, Tensor]] = {}
    for ours, tensor in weights.items():
        name, how = place_of(form, ours)
        one = tensor.detach()
        if how.turned and one.ndim == 2:
            one = one.T
        if how.skip:
            one = torch.cat([one.new_zeros(how.skip, one.shape[1]), one])
        if how.part is None:
            found[name] = one.reshape(*[1] * how.lead, *one.shape)
        else:
            parts.setdefault(name, {})[how.part] = one
    for name, three in parts.items():
        found[name] = torch.cat([three[part] for part in sorted(three)], -1)
    prefixed = {
        name if name.startswith(form.heads) else form.prefix + name: tensor
        for name, tensor in found.items()
    }
    return {name: tensor.contiguous() for name, tensor in prefixed.items()}


def taken(tensor: Tensor, how: Name) -> Tensor | None:
    """What is ours of their tensor; None if it cannot be."""
    if how.part is not None:
        if tensor.shape[-1] % 3:
            return None
        tensor = tensor.chunk(3, -1)[how.part]
    if how.lead:
        if tensor.shape[: how.lead] != (1,) * how.lead:
            return None
        tensor = tensor.reshape(tensor.shape[how.lead :])
    if how.turned and tensor.ndim == 2:
        tensor = tensor.T
    return tensor[how.skip :].contiguous()


def place_of(form: Format, ours: str) -> Place:
    for how in form.names:
        pattern = re.escape(how.ours).replace(r"\{i\}", r"(?P<i>\d+)")
        found = re.fullmatch(pattern.replace(r"\*", r"(?P<kind>weight|bias)"), ours)
        if found is not None:
            groups = found.groupdict()
            name = how.theirs.replace("{i}", groups.get("i", ""))
            return Place(name.replace("*", groups.get("kind", "")), how)
    raise ValueError(f"{ours}: Hugging Face's {form.prefix.rstrip('.')} has no tensor for it")


def complain(where: Path, what: str, names: Collection[str]) -> None:
    if not names:
        return
    first = ", ".join(list(names)[:SHOWN])
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    raise ValueError(f"{where}: tensors {what}: {first}{rest}")
