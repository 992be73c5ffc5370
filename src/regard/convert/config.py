"""Their config.json into our settings, and back."""

import json
from collections.abc import Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.convert.formats import ACTIVATIONS, ARCHITECTURES, FORMATS, ModelFormat, SettingMapping

if TYPE_CHECKING:
    from torch import nn

CONFIG_FILE = "config.json"
SPECIAL_ID_KEYS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")


def read_config(folder: Path) -> tuple[str, dict[str, Any], dict[str, int]]:
    """The name of the format, our settings, and the ids of special tokens by their names."""
    path = folder / CONFIG_FILE
    config = read_json_object(path)
    name = config.get("model_type")
    if name not in FORMATS:
        raise ValueError(
            f"{path}: model_type {name!r} is not known; there are {', '.join(FORMATS)}"
        )
    model_format = FORMATS[name]
    for option, values in model_format.supported_values.items():
        if config.get(option, values[0]) not in values:
            actual, supported = json.dumps(config[option]), json.dumps(values[0])
            raise ValueError(
                f"{path}: {option} is {actual}, which is not supported, only {supported} is"
            )
    for option_a, option_b in model_format.equal_options:
        if config.get(option_a) != config.get(option_b):
            raise ValueError(
                f"{path}: {option_a} {config.get(option_a)} and {option_b} "
                f"{config.get(option_b)} are not equal, "
                "which is not supported"
            )
    settings = {field.ours: setting_value(config, field, path) for field in model_format.settings}
    derived_settings = {
        name: derived_setting(name, settings) for name, value in settings.items() if value is None
    }
    ids = {key: config[key] for key in SPECIAL_ID_KEYS if isinstance(config.get(key), int)}
    return name, {**settings, **derived_settings, **model_format.fixed_settings}, ids


def setting_value(config: Mapping[str, Any], field: SettingMapping, path: Path) -> Any:
    if (config.get(field.theirs), field.default) == (None, None):
        return None
    value = config.get(field.theirs, field.default)
    if field.ours == "activation":
        if value not in ACTIVATIONS:
            supported = ", ".join(ACTIVATIONS)
            raise ValueError(
                f"{path}: {field.theirs} {value!r} is not supported; there are {supported}"
            )
        return ACTIVATIONS[value]
    kind = int if field.default is None else type(field.default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is int and value < 0):
        raise ValueError(f"{path}: {field.theirs} must be of type {kind.__name__}, not {value!r}")
    return value - field.offset if field.offset else value


def build_config(
    name: str, settings: Mapping[str, Any], ids: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """What config.json says of a model of ours with these settings."""
    model_format = FORMATS[name]
    defaults = {
        key: parameter.default
        for key, parameter in signature(format_model_class(model_format)).parameters.items()
        if parameter.default is not Parameter.empty
    }
    all_settings = {**defaults, **settings}
    for key, value in model_format.fixed_settings.items():
        if all_settings.get(key) != value:
            raise ValueError(
                f"{key} is {all_settings.get(key)!r}, and a {name} of Hugging Face has "
                f"{value!r} only"
            )
    key = (name, all_settings.get("pretrain", "none"))
    if key not in ARCHITECTURES:
        raise ValueError(f"pretrain is {key[1]!r}, which a {name} of Hugging Face does not have")
    config: dict[str, Any] = {"architectures": [ARCHITECTURES[key]], "model_type": name}
    for field in model_format.settings:
        value: Any = all_settings[field.ours]
        if field.ours == "activation":
            value = next(theirs for theirs, ours in ACTIVATIONS.items() if ours == value)
        elif value is None:
            value = derived_setting(field.ours, all_settings)
        config[field.theirs] = value + field.offset if field.offset else value
    config |= {option_a: config[option_b] for option_a, option_b in model_format.equal_options}
    if model_format.modality == "text":
        config["tie_word_embeddings"] = True
    return {**config, "dtype": "float32", **(ids or {})}


def derived_setting(name: str, settings: Mapping[str, Any]) -> Any:
    """Settings that follow others when they are None."""
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


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: is missing; is this a folder of Hugging Face's?") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: is not JSON ({error})") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path}: must hold a JSON object, not a {type(data).__name__}")
    return data
