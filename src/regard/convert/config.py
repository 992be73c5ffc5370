"""Convert config.json of Hugging Face into settings, and back."""

import json
from collections.abc import Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING

from regard.convert.formats import (
    ACTIVATIONS,
    ARCHITECTURES,
    FORMATS,
    ModelFormat,
    SettingMapping,
    SettingValue,
)
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import read_json_object

if TYPE_CHECKING:
    from torch import nn

CONFIG_FILE = "config.json"
SPECIAL_ID_KEYS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")


def read_config(folder: Path) -> tuple[str, JsonObject, dict[str, int]]:
    """Return the name of the format, our settings, and the ids of special tokens by name."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise InputError(f"{path}: is missing; give a folder of Hugging Face")
    config = read_json_object(path)
    name = config.get("model_type")
    if not isinstance(name, str) or name not in FORMATS:
        raise InputError(
            f"{path}: model_type {name!r} is not supported; supported: {', '.join(FORMATS)}"
        )
    model_format = FORMATS[name]
    for option, values in model_format.supported_values.items():
        if config.get(option, values[0]) not in values:
            actual, supported = json.dumps(config[option]), json.dumps(values[0])
            raise InputError(
                f"{path}: {option} = {actual} is not supported; supported: {supported}"
            )
    for option_a, option_b in model_format.equal_options:
        if config.get(option_a) != config.get(option_b):
            raise InputError(
                f"{path}: {option_a} ({config.get(option_a)}) and {option_b} "
                f"({config.get(option_b)}) must be equal"
            )
    settings = {field.ours: setting_value(config, field, path) for field in model_format.settings}
    derived_settings = {
        name: derived_setting(name, settings) for name, value in settings.items() if value is None
    }
    ids = {key: config[key] for key in SPECIAL_ID_KEYS if isinstance(config.get(key), int)}
    return name, {**settings, **derived_settings, **model_format.fixed_settings}, ids


def setting_value(config: JsonObject, field: SettingMapping, path: Path) -> SettingValue:
    if (config.get(field.theirs), field.default) == (None, None):
        return None
    value = config.get(field.theirs, field.default)
    if field.ours == "activation":
        if not isinstance(value, str) or value not in ACTIVATIONS:
            supported = ", ".join(ACTIVATIONS)
            raise InputError(
                f"{path}: {field.theirs} {value!r} is not supported; supported: {supported}"
            )
        return ACTIVATIONS[value]
    kind = int if field.default is None else type(field.default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (isinstance(value, int) and value < 0):
        raise InputError(f"{path}: {field.theirs} must be of type {kind.__name__}, not {value!r}")
    return value - field.offset if field.offset and isinstance(value, int) else value


def build_config(
    name: str, settings: JsonObject, ids: Mapping[str, int] | None = None
) -> JsonObject:
    """Return config.json of a model with these settings."""
    model_format = FORMATS[name]
    defaults = {
        key: parameter.default
        for key, parameter in signature(format_model_class(model_format)).parameters.items()
        if parameter.default is not Parameter.empty
    }
    all_settings = {**defaults, **settings}
    for key, value in model_format.fixed_settings.items():
        if all_settings.get(key) != value:
            raise InputError(
                f"model.{key} = {all_settings.get(key)!r} cannot be exported as {name}; "
                f"supported: {value!r}"
            )
    key = (name, all_settings.get("pretrain", "none"))
    if key not in ARCHITECTURES:
        raise InputError(f"model.pretrain = {key[1]!r} cannot be exported as {name}")
    config: JsonObject = {"architectures": [ARCHITECTURES[key]], "model_type": name}
    for field in model_format.settings:
        value = all_settings[field.ours]
        if field.ours == "activation":
            value = next(theirs for theirs, ours in ACTIVATIONS.items() if ours == value)
        elif value is None:
            value = derived_setting(field.ours, all_settings)
        if field.offset and isinstance(value, int):
            value += field.offset
        config[field.theirs] = value
    config |= {option_a: config[option_b] for option_a, option_b in model_format.equal_options}
    if model_format.modality == "text":
        config["tie_word_embeddings"] = True
    return {**config, "dtype": "float32", **(ids or {})}


def derived_setting(name: str, settings: JsonObject) -> SettingValue:
    """Return the value of a setting that is None, from other settings."""
    derived = {
        "hidden_dim": 4 * settings["dim"],
        "decoder_layers": settings["layers"],
        "attention_dropout": settings["dropout"],
        "embedding_dropout": settings["dropout"],
    }
    return derived[name]


def format_model_class(model_format: ModelFormat) -> "type[nn.Module]":
    module, _, name = model_format.import_path.partition(":")
    return getattr(import_module(module), name)
