"""Read and write folders in the format of Hugging Face's `save_pretrained`.

    config.json   model.safetensors (or parts with an index)   tokenizer.json, or vocabulary files

`formats.py` has the names in both formats. Pickles are never loaded.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch
from torch import Tensor, nn

from regard.convert.config import CONFIG_FILE, build_config, format_model_class, read_config
from regard.convert.formats import FORMATS, ModelFormat, TensorMapping
from regard.convert.image_head import (
    HEAD_PREFIX,
    PREPROCESSOR_FILE,
    ImageHead,
    label_config,
    pop_image_head,
    preprocessor_config,
)
from regard.convert.sentence_embedding import read_sentence_embedding
from regard.convert.text_head import head_config, head_tensors, pop_text_head
from regard.convert.weights import (
    WEIGHTS_FILE,
    from_hugging_face,
    read_tensors,
    to_hugging_face,
    without_prefix,
)
from regard.errors import InputError
from regard.files import JsonObject, draft_path, write_atomic
from regard.parsing import one_line
from regard.tasks.exportable import ExportableHead
from regard.tasks.run_weights import SkipInitialization, check_limits
from regard.text.external import ExternalTokenizer, read_tokenizer


class ImportedModel(NamedTuple):
    """The contents of a Hugging Face folder; `build_imported_model` builds the model.

    `format` is their `model_type`; `kind`, `settings` and the names of `weights` are ours.
    `special_ids` are those of config.json. `notes` tell the user what was not imported.
    `image_head` is the classifier of a model of images. `embedding` are settings of [vectors].
    """

    format: str
    kind: str
    settings: JsonObject
    weights: dict[str, Tensor]
    tokenizer: ExternalTokenizer | None
    special_ids: dict[str, int]
    notes: tuple[str, ...] = ()
    image_head: ImageHead | None = None
    embedding: JsonObject | None = None


def read_folder(path: Path | str) -> ImportedModel:
    """Read a folder, and check that its tensors and its tokenizer fit the config."""
    folder = Path(path)
    if not folder.exists():
        raise InputError(f"{folder}: there is no such folder; give one with {CONFIG_FILE}")
    if not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the folder with config.json in it")
    name, settings, special_ids = read_config(folder)
    model_format = FORMATS[name]
    tensors = without_prefix(model_format, read_tensors(folder))
    image_head = pop_image_head(folder, tensors) if model_format.modality == "images" else None
    if model_format.model == "bert":
        settings["pooler"] = "pooler.dense.weight" in tensors
        settings["pretrain"] = pretraining_heads(model_format.tensors, tensors)
    head_names = pop_text_head(tensors) if model_format.model == "bert" else ()
    check_limits(settings, str(folder / CONFIG_FILE))
    try:
        expected_shapes = {
            key: t.shape for key, t in build_on_meta(model_format, settings).state_dict().items()
        }
    except (ValueError, RuntimeError, TypeError, ZeroDivisionError) as error:
        raise InputError(f"{folder / CONFIG_FILE}: {one_line(error)}") from None
    weights = from_hugging_face(model_format, tensors, expected_shapes, folder)
    if model_format.modality == "images":
        return ImportedModel(
            name, model_format.model, settings, weights, None, special_ids, image_head=image_head
        )
    tokenizer, notes = read_tokenizer(folder, name), text_head_notes(folder, head_names)
    if tokenizer is None:
        notes = (missing_tokenizer_note(folder), *notes)
    elif tokenizer.size > (rows := len(weights[model_format.embedding_name])):
        raise InputError(
            f"{folder}: the tokenizer has ids up to {tokenizer.size - 1}, but the word embeddings "
            f"have {rows} rows; use the files of one model"
        )
    embedding = read_sentence_embedding(folder)
    return ImportedModel(
        *(name, model_format.model, settings, weights, tokenizer, special_ids),
        notes=(*notes, *embedding.notes),
        embedding=embedding.settings,
    )


def build_imported_model(imported: ImportedModel) -> nn.Module:
    """Return the model with its weights, in evaluation mode."""
    model = build_on_meta(FORMATS[imported.format], imported.settings)
    model.load_state_dict(imported.weights, assign=True)
    return model.eval()


def write_folder(
    path: Path | str,
    model_type: str,
    settings: JsonObject,
    weights: Mapping[str, Tensor],
    tokenizer: ExternalTokenizer | None = None,
    special_ids: Mapping[str, int] | None = None,
    image_head: ImageHead | None = None,
    text_head: ExportableHead | None = None,
) -> Path:
    """Write a folder that `from_pretrained` of transformers reads, completely or not at all.

    `weights` is the `state_dict` of our model with these `settings`. `image_head` is the
    classifier of a model of images, `text_head` the head of a model of texts.
    """
    folder = Path(path)
    if model_type not in FORMATS:
        raise InputError(
            f"model_type {model_type!r} is not supported; supported: {', '.join(FORMATS)}"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists already; name a new or an empty folder")
    config = build_config(model_type, settings, special_ids)
    float_weights = {key: tensor.to(torch.float32) for key, tensor in weights.items()}
    exported = to_hugging_face(FORMATS[model_type], float_weights)
    if image_head is not None:
        config |= label_config(image_head)
        exported |= {f"{HEAD_PREFIX}.{part}": tensor for part, tensor in image_head.head.items()}
    if text_head is not None:
        config |= head_config(text_head)
        exported |= head_tensors(text_head)
    tensors = safetensors.torch.save(exported, {"format": "pt"})
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_path(folder)
    draft.mkdir()
    try:
        write_atomic(draft / WEIGHTS_FILE, tensors)
        write_atomic(draft / CONFIG_FILE, to_json_bytes(config))
        if image_head is not None:
            write_atomic(
                draft / PREPROCESSOR_FILE,
                to_json_bytes(preprocessor_config(settings["size"], image_head)),
            )
        if tokenizer is not None:
            tokenizer.save(draft / "tokenizer.json")
            options = build_tokenizer_config(tokenizer, settings, text_head)
            write_atomic(draft / "tokenizer_config.json", to_json_bytes(options))
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def build_tokenizer_config(
    tokenizer: ExternalTokenizer, settings: JsonObject, text_head: ExportableHead | None
) -> JsonObject:
    """Return tokenizer_config.json: the inputs of the model, and the length for its head."""
    config: JsonObject = {**tokenizer.tokenizer_config()}
    segments = ["token_type_ids"] if settings.get("segments", 0) > 1 else []
    config["model_input_names"] = ["input_ids", *segments, "attention_mask"]
    if text_head is not None:
        config["model_max_length"] = text_head.max_tokens
    return config


def build_on_meta(model_format: ModelFormat, settings: JsonObject) -> nn.Module:
    """Return the model on the meta device, without memory for its weights."""
    with torch.device("meta"), SkipInitialization():
        return format_model_class(model_format)(**settings)


def pretraining_heads(names: Sequence[TensorMapping], tensors: Mapping[str, Tensor]) -> str:
    """Return `model.pretrain` of BERT: which pretraining heads have tensors."""
    theirs = {name.ours: name.theirs.replace("*", "weight") for name in names}
    if theirs.get("following.*") in tensors:
        return "both"
    return "masked" if theirs["guess.*"] in tensors else "none"


def text_head_notes(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    return (f"{folder}: the head ({', '.join(names)}) is left out; imported the encoder only",)


def missing_tokenizer_note(folder: Path) -> str:
    if any(folder.glob("*.spm")):
        return f"{folder}: sentencepiece files (*.spm) are not supported; imported no tokenizer"
    return (
        f"{folder}: there is no tokenizer; add tokenizer.json, vocab.txt, or vocab.json and "
        "merges.txt"
    )


def to_json_bytes(data: JsonObject) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()
