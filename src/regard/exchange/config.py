"""Their config.json into our settings, and back."""

import json
from collections.abc import Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.exchange.table import ACTIVATIONS, ARCHITECTURES, FORMATS, Field, Format

if TYPE_CHECKING:
    from torch import nn

CONFIG = "config.json"
IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")


def read_config(folder: Path) -> tuple[str, dict[str, Any], dict[str, int]]:
    """The name of the format, our settings, and the ids of special tokens by their names."""
    path = folder / CONFIG
    config = read_object(path)
    name = config.get("model_type")
    if name not in FORMATS:
        raise ValueError(
            f"{path}: model_type {name!r} is not known; there are {', '.join(FORMATS)}"
        )
    form = FORMATS[name]
    for option, values in form.only.items():
        if config.get(option, values[0]) not in values:
            given, want = json.dumps(config[option]), json.dumps(values[0])
            raise ValueError(f"{path}: {option} is {given}, which is not supported, only {want} is")
    for one, other in form.same:
        if config.get(one) != config.get(other):
            raise ValueError(
                f"{path}: {one} {config.get(one)} and {other} {config.get(other)} are not equal, "
                "which is not supported"
            )
    settings = {field.ours: value_of(config, field, path) for field in form.fields}
    unsaid = {name: derived(name, settings) for name, value in settings.items() if value is None}
    ids = {key: config[key] for key in IDS if isinstance(config.get(key), int)}
    return name, {**settings, **unsaid, **form.fixed}, ids


def value_of(config: Mapping[str, Any], field: Field, path: Path) -> Any:
    if (config.get(field.theirs), field.default) == (None, None):
        return None
    value = config.get(field.theirs, field.default)
    if field.ours == "activation":
        if value not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(
                f"{path}: {field.theirs} {value!r} is not supported; there are {known}"
            )
        return ACTIVATIONS[value]
    kind = int if field.default is None else type(field.default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is int and value < 0):
        raise ValueError(f"{path}: {field.theirs} must be of type {kind.__name__}, not {value!r}")
    return value - field.more if field.more else value


def make_config(
    name: str, settings: Mapping[str, Any], ids: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """What config.json says of a model of ours with these settings."""
    form = FORMATS[name]
    known = {
        key: parameter.default
        for key, parameter in signature(model_class(form)).parameters.items()
        if parameter.default is not Parameter.empty
    }
    whole = {**known, **settings}
    for key, value in form.fixed.items():
        if whole.get(key) != value:
            raise ValueError(
                f"{key} is {whole.get(key)!r}, and a {name} of Hugging Face has {value!r} only"
            )
    key = (name, whole.get("pretrain", "none"))
    if key not in ARCHITECTURES:
        raise ValueError(f"pretrain is {key[1]!r}, which a {name} of Hugging Face does not have")
    config: dict[str, Any] = {"architectures": [ARCHITECTURES[key]], "model_type": name}
    for field in form.fields:
        value: Any = whole[field.ours]
        if field.ours == "activation":
            value = next(theirs for theirs, ours in ACTIVATIONS.items() if ours == value)
        elif value is None:
            value = derived(field.ours, whole)
        config[field.theirs] = value + field.more if field.more else value
    config |= {one: config[other] for one, other in form.same}
    if form.reads == "text":
        config["tie_word_embeddings"] = True
    return {**config, "dtype": "float32", **(ids or {})}


def derived(name: str, settings: Mapping[str, Any]) -> Any:
    """Settings that follow others when they are None."""
    follows = {
        "hidden_dim": 4 * settings["dim"],
        "decoder_layers": settings["layers"],
        "attention_dropout": settings["dropout"],
        "embedding_dropout": settings["dropout"],
    }
    return follows[name]


def model_class(form: Format) -> "type[nn.Module]":
    module, _, name = form.place.partition(":")
    return getattr(import_module(module), name)


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: is missing; is this a folder of Hugging Face's?") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: must hold a JSON object, not a {type(found).__name__}")
    return found
