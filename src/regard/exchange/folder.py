"""Folders as Hugging Face's `save_pretrained` writes them: config, weights, tokeniser.

    config.json   model.safetensors (or parts with an index)   tokenizer.json, or vocabulary files

`table.py` says what maps where. No pickle is ever loaded.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.config.whole import write_whole
from regard.exchange.config import CONFIG, make_config, model_class, read_config
from regard.exchange.sight import HEAD, PREPARED, Sight, config_of, prepared, taken_off
from regard.exchange.table import FORMATS, Format
from regard.exchange.weights import WEIGHTS, read_tensors, to_ours, to_theirs, without_prefix
from regard.text.foreign import ForeignTokeniser, read_tokeniser


class Imported(NamedTuple):
    """A model of somebody else's in our terms; `build(imported)` makes it.

    `format` is their `model_type`, `kind` and `settings` are ours, `ids` their special tokens as
    config.json has them. `notes` are lines for the user: what was left behind. `seen` is what a
    model of pictures has beside its encoder.
    """

    format: str
    kind: str
    settings: dict[str, Any]
    weights: dict[str, Tensor]
    tokeniser: ForeignTokeniser | None
    ids: dict[str, int]
    notes: tuple[str, ...] = ()
    seen: Sight | None = None


def read_folder(path: Path | str) -> Imported:
    """What is in the folder, checked: each tensor has its place, and the tokeniser fits."""
    folder = Path(path)
    if not folder.exists():
        raise ValueError(f"{folder}: there is no such folder")
    if not folder.is_dir():
        raise ValueError(f"{folder}: is a file; give the folder with config.json in it")
    name, settings, ids = read_config(folder)
    form = FORMATS[name]
    tensors = without_prefix(form, read_tensors(folder))
    seen = taken_off(folder, tensors) if form.reads == "pictures" else None
    if form.model == "bert":
        settings["pooler"] = "pooler.dense.weight" in tensors
        settings["pretrain"] = tasks_of(form.names, tensors)
    try:
        wanted = {key: t.shape for key, t in on_meta(form, settings).state_dict().items()}
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG}: {error}") from None
    weights = to_ours(form, tensors, wanted, folder)
    if form.reads == "pictures":
        return Imported(name, form.model, settings, weights, None, ids, seen=seen)
    tokeniser, notes = read_tokeniser(folder, name), ()
    if tokeniser is None:
        notes = (no_tokeniser(folder),)
    elif tokeniser.size > (rows := len(weights[form.words])):
        raise ValueError(
            f"{folder}: the tokeniser has ids up to {tokeniser.size - 1}, but the table of words "
            f"has {rows} rows: these files are not of one model"
        )
    return Imported(name, form.model, settings, weights, tokeniser, ids, notes)


def build(imported: Imported) -> nn.Module:
    """The model with its weights, ready to run."""
    model = on_meta(FORMATS[imported.format], imported.settings)
    model.load_state_dict(imported.weights, assign=True)
    return model.eval()


def write_folder(
    path: Path | str,
    name: str,
    settings: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    tokeniser: ForeignTokeniser | None = None,
    ids: Mapping[str, int] | None = None,
    seen: Sight | None = None,
) -> Path:
    """A folder that `from_pretrained` of transformers reads, whole or not at all.

    `name` is their `model_type`, `weights` the `state_dict` of our model with these `settings`;
    `seen` is for a model of pictures.
    """
    folder = Path(path)
    if name not in FORMATS:
        raise ValueError(f"format {name!r} is not known; there are {', '.join(FORMATS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder}: is there already; name a new or an empty folder")
    config = make_config(name, settings, ids)
    plain = {key: tensor.to(torch.float32) for key, tensor in weights.items()}
    theirs = to_theirs(FORMATS[name], plain)
    if seen is not None:
        config |= config_of(seen)
        theirs |= {f"{HEAD}.{part}": tensor for part, tensor in seen.head.items()}
    tensors = safetensors.torch.save(theirs, {"format": "pt"})
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    draft.mkdir()
    try:
        write_whole(draft / WEIGHTS, tensors)
        write_whole(draft / CONFIG, encoded(config))
        if seen is not None:
            write_whole(draft / PREPARED, encoded(prepared(settings["size"], seen)))
        if tokeniser is not None:
            tokeniser.save(draft / "tokenizer.json")
            write_whole(draft / "tokenizer_config.json", encoded(tokeniser.config()))
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


class Undrawn(TorchFunctionMode):
    """Weights are not drawn: on the meta device that would do nothing, and import 800 modules."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in ("normal_", "uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def on_meta(form: Format, settings: Mapping[str, Any]) -> nn.Module:
    """The model without memory for its weights."""
    with torch.device("meta"), Undrawn():
        return model_class(form)(**settings)


def tasks_of(names: tuple[Any, ...], tensors: Mapping[str, Tensor]) -> str:
    """Which heads of BERT's pretraining are there."""
    theirs = {name.ours: name.theirs.replace("*", "weight") for name in names}
    if theirs.get("following.*") in tensors:
        return "both"
    return "masked" if theirs["guess.*"] in tensors else "none"


def no_tokeniser(folder: Path) -> str:
    if any(folder.glob("*.spm")):
        return f"{folder}: sentencepiece files (*.spm) are not read: it comes without a tokeniser"
    return (
        f"{folder}: there is no tokeniser (tokenizer.json, vocab.txt, or vocab.json and merges.txt)"
    )


def encoded(found: Mapping[str, Any]) -> bytes:
    return (json.dumps(found, indent=2, ensure_ascii=False) + "\n").encode()
