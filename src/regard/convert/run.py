"""Convert Hugging Face folders into runs, and runs into folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from regard.convert.ctranslate2_folder import export_ctranslate2
from regard.convert.folder import ImportedModel, read_folder, write_folder
from regard.convert.hub import find_model_folder
from regard.convert.image_head import ImageHead
from regard.convert.onnx_folder import export_onnx
from regard.convert.text_head import encoder_weights
from regard.errors import InputError
from regard.run import Run
from regard.tasks.catalogue import TASK_OF_IMPORTED_MODEL
from regard.tasks.load import resolve_settings
from regard.tasks.run_folder import CONFIG_FILE
from regard.text.external import ExternalTokenizer
from regard.text.labels import Labels
from regard.training.trainer import check_folder_is_free

ExportFormat = Literal["huggingface", "ctranslate2", "onnx"]
READERS = {
    "huggingface": "from_pretrained of transformers",
    "ctranslate2": "CTranslate2",
    "onnx": "an ONNX runtime",
}
PLACEHOLDER_LABELS = ("0", "1")  # classes of an imported encoder without a classifier


def import_run(
    model: Path | str,
    run_folder: Path | str,
    *,
    revision: str | None = None,
    on_message: Callable[[str], None] = print,
) -> Run:
    """Convert a folder of Hugging Face, or a model of its hub, into a run with its tokenizer.

    A name on the hub is downloaded with `huggingface_hub`, without code and without pickles.
    `revision` is a branch, a tag or a commit there. `on_message` receives a line for each part of
    the folder that is not converted.

    >>> import regard
    >>> run = regard.fit(
    ...     "pretrain",
    ...     [{"text": "one two three. two three four."}] * 4,
    ...     {"kind": "bert", "dim": 8, "heads": 2, "layers": 1, "pretrain": "both"},
    ...     steps=1,
    ...     folder="runs/bert",
    ...     progress=False,
    ... )
    >>> regard.export_run(run, "bert")          # transformers: AutoModel.from_pretrained("bert")
    >>> regard.import_run("bert", "runs/imported").settings.model.kind
    'bert'
    """
    folder = find_model_folder(model, revision)
    run_folder, imported = Path(run_folder), read_folder(folder)
    if imported.kind not in TASK_OF_IMPORTED_MODEL:
        raise InputError(
            f"{folder}: no task can run {imported.format}; use read_folder and "
            "build_imported_model of regard.convert.folder"
        )
    if imported.image_head is None:
        check_tokenizer_size(folder, imported)
    if (run_folder / CONFIG_FILE).is_file():
        raise InputError(f"{run_folder}: holds a run already; use another folder")
    if imported.image_head is not None:
        run = build_image_run(folder, imported, imported.image_head)
    else:
        run = build_text_run(imported)
        run.model.load_state_dict(imported.weights)
    check_folder_is_free(run_folder, run.settings)
    run.save(run_folder)
    for note in imported.notes:
        on_message(note)
    return run


def check_tokenizer_size(folder: Path | str, imported: ImportedModel) -> None:
    """Check that there is a tokenizer as large as the word embeddings."""
    if imported.tokenizer is None:
        raise InputError(*imported.notes)
    rows = imported.settings["size"]
    if rows != imported.tokenizer.size:
        raise InputError(
            f"{folder}: the word embeddings have {rows} rows, but the tokenizer has "
            f"{imported.tokenizer.size} tokens; remove the unused rows first"
        )


def build_image_run(folder: Path | str, imported: ImportedModel, image_head: ImageHead) -> Run:
    """Return a classifier of images; an encoder alone gets two untrained classes."""
    settings = {n: v for n, v in imported.settings.items() if n not in ("size", "channels")}
    side, channels = imported.settings["size"], imported.settings["channels"]
    reading = {"size": (side, side), "channels": channels, "fit": "stretch"}
    raw = {
        "task": TASK_OF_IMPORTED_MODEL[imported.kind],
        "model": {"kind": imported.kind, **settings},
        "image": {**reading, "mean": image_head.mean, "std": image_head.std},
        "head": {"dropout": 0.0},
    }
    if len(set(image_head.labels)) < len(image_head.labels):
        duplicate = next(name for name in image_head.labels if image_head.labels.count(name) > 1)
        raise InputError(
            f"{folder}: two classes are called {duplicate!r}; give them different names"
        )
    resolved = resolve_settings(raw)
    run = Run(resolved, {"labels": Labels(image_head.labels or PLACEHOLDER_LABELS)})
    run.model.encoder.load_state_dict(imported.weights)
    if image_head.head:
        width = run.model.head.output.in_features
        if image_head.head["weight"].shape[1] != width:
            raise InputError(f"{folder}: the classifier must read vectors of {width} values")
        run.model.head.output.load_state_dict(image_head.head)
    return run


def build_text_run(imported: ImportedModel) -> Run:
    settings = {name: value for name, value in imported.settings.items() if name != "size"}
    raw = {
        "task": TASK_OF_IMPORTED_MODEL[imported.kind],
        "model": {"kind": imported.kind, **settings},
    }
    if imported.kind == "bert":
        raw["vectors"] = imported.embedding or {}
    if imported.kind == "gpt2":
        raw["train"] = {"context_length": min(128, settings["max_positions"])}
    resolved = resolve_settings(raw)
    return Run(resolved, {"text": imported.tokenizer})


def check_export_format(name: str) -> ExportFormat:
    for known in get_args(ExportFormat):
        if name == known:
            return known
    raise InputError(f"--to: unknown format {name!r}; choose from {', '.join(READERS)}")


def export_run(
    run: Run | Path | str,
    folder: Path | str,
    *,
    to: ExportFormat = "huggingface",
    int8: bool = False,
) -> None:
    """Write the model of a run to a new folder for other programs.

    "huggingface" is what `from_pretrained` of transformers reads: BERT, GPT-2 and ViT, with the
    head of a classifier, of a tagger or of a run that answers questions. A head that transformers
    does not have is refused. "ctranslate2" and "onnx" take transformer, GPT-2 and BERT; CTranslate2
    has no heads, but weights of 8 bits (`int8`). `import_run` has an example.
    """
    if int8 and to != "ctranslate2":
        raise InputError(f"--int8: {to} has no weights of 8 bits; use --to ctranslate2")
    location, folder = "export" if isinstance(run, Run) else str(run), Path(folder)
    run = run if isinstance(run, Run) else Run.load(run, device="cpu")
    run.check_on_cpu(f"{location}: exports")
    if to == "ctranslate2":
        export_ctranslate2(run, folder, location, int8=int8)
        return
    if to == "onnx":
        export_onnx(run, folder, location)
        return
    kind = run.settings.model.kind
    if kind not in TASK_OF_IMPORTED_MODEL:
        supported = ", ".join(TASK_OF_IMPORTED_MODEL)
        raise InputError(f"{location}: {kind} cannot be exported; supported: {supported}")
    if kind == "vit":
        export_image_run(location, run, folder)
        return
    tokenizer = run.vocabularies["text"]
    if not isinstance(tokenizer, ExternalTokenizer):
        tokenizer = ExternalTokenizer.from_tokenizer(tokenizer, mask=kind == "bert")
    settings = run.settings.model.model_dump(exclude={"kind"})
    try:
        weights = dict(run.task.exportable_model().state_dict())
        head = run.task.exportable_head()
    except ValueError as error:
        raise InputError(f"{location}: {error}") from None
    settings["size"] = len(weights["words.weight"])
    if head is not None:
        weights = encoder_weights(head, weights)
        settings["pretrain"] = "none"
        if settings["segments"] == 0:  # BERT of transformers always has segments: one of zeros
            settings["segments"] = 1
            weights["segments.weight"] = torch.zeros(1, settings["dim"])
    write_folder(folder, kind, settings, weights, tokenizer, text_head=head)


def export_image_run(location: str, run: Run, folder: Path) -> None:
    """Write a classifier of images, with its classes and its preprocessing."""
    all_settings: Any = run.settings
    reading, head, start = all_settings.image, all_settings.head, all_settings.start
    unsupported = {
        "start.lora_rank": start.lora_rank > 0,
        "head.hidden_dim": head.hidden_dim is not None,
        "head.pooling": head.pooling not in (None, "first"),
        "image.size of unequal sides": reading.size[0] != reading.size[1],
    }
    if unsupported_names := [name for name, is_set in unsupported.items() if is_set]:
        raise InputError(f"{location}: a run with {unsupported_names[0]} cannot be exported")
    model = run.model
    settings = run.settings.model.model_dump(exclude={"kind"})
    settings |= {"size": reading.size[0], "channels": reading.channels}
    mean, std = (
        values * (reading.channels // len(values)) for values in (reading.mean, reading.std)
    )
    output = dict(model.head.output.state_dict())
    image_head = ImageHead(tuple(run.vocabularies["labels"].names), output, mean, std)
    write_folder(folder, "vit", settings, dict(model.encoder.state_dict()), image_head=image_head)
