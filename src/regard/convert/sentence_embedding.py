"""The pooling of a folder of sentence-transformers, as settings of [vectors].

modules.json: the modules in order   1_Pooling/config.json   sentence_bert_config.json
"""

from pathlib import Path
from typing import NamedTuple

from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import read_json, read_json_object
from regard.tasks.text_vectors import SPECIAL_TOKEN_COUNT

MODULES_FILE = "modules.json"
LENGTH_FILE = "sentence_bert_config.json"
PROMPT_FILE = "config_sentence_transformers.json"
POOLINGS = {  # theirs: ours
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_max_tokens": "max",
}
SHORT_POOLINGS = {"mean": "mean", "cls": "first", "max": "max"}  # of `pooling_mode`
SUPPORTED_MODULES = ("Transformer", "Pooling", "Normalize")


class SentenceEmbedding(NamedTuple):
    """Settings of [vectors], and a line for each part of the folder that they cannot express."""

    settings: JsonObject
    notes: tuple[str, ...] = ()


def read_sentence_embedding(folder: Path) -> SentenceEmbedding:
    """Read how sentence-transformers pools the states of this model; no settings without it."""
    path = folder / MODULES_FILE
    if not path.is_file():
        return SentenceEmbedding({})
    module_paths = read_modules(path)
    notes = [
        f"{path}: module {name} is not supported; `regard embed` leaves it out"
        for name in module_paths
        if name not in SUPPORTED_MODULES
    ]
    settings: JsonObject = {"normalize": "Normalize" in module_paths}
    if "Pooling" in module_paths:
        pooling_file = folder / module_paths["Pooling"] / "config.json"
        pooling = read_pooling(pooling_file)
        if pooling is None:
            notes.append(f"{pooling_file}: this pooling is not supported; `regard embed` uses mean")
        settings["pooling"] = pooling or "mean"
    if (folder / LENGTH_FILE).is_file():
        length = read_json_object(folder / LENGTH_FILE).get("max_seq_length")
        if type(length) is int and length > SPECIAL_TOKEN_COUNT:
            settings["max_tokens"] = length - SPECIAL_TOKEN_COUNT
    if (folder / PROMPT_FILE).is_file():
        prompt = read_json_object(folder / PROMPT_FILE).get("default_prompt_name")
        if prompt is not None:
            notes.append(
                f"{folder / PROMPT_FILE}: the prompt {prompt!r} is not added; put it before texts"
            )
    return SentenceEmbedding(settings, tuple(notes))


def read_modules(path: Path) -> dict[str, str]:
    """Return the folder of each module, by the last part of its class."""
    modules = read_json(path)
    if not isinstance(modules, list):
        raise InputError(f"{path}: must hold a list of modules, not a {type(modules).__name__}")
    folders: dict[str, str] = {}
    for number, module in enumerate(modules, 1):
        values = module if isinstance(module, dict) else {}
        kind, part = values.get("type"), values.get("path")
        if not isinstance(kind, str) or not kind or not isinstance(part, str):
            raise InputError(f"{path}: module {number} must have a type and a path")
        if Path(part).name != part:
            raise InputError(f"{path}: module {number}: {part!r} is not a folder in this one")
        folders[kind.rpartition(".")[2]] = part
    return folders


def read_pooling(path: Path) -> str | None:
    """Return our name of the pooling; None for another one, or for several at once."""
    config = read_json_object(path)
    mode = config.get("pooling_mode")
    if mode is not None:
        return SHORT_POOLINGS.get(mode) if isinstance(mode, str) else None
    modes = [key for key, value in config.items() if key.startswith("pooling_mode_") and value]
    return POOLINGS.get(modes[0]) if len(modes) == 1 else None
