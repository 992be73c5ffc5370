"""`regard import` and `regard export`: convert Hugging Face folders into runs, and back."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import RunArgument
from regard.convert.run import READERS, check_export_format, export_run, import_run

HuggingFaceModel = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Folder with config.json and model.safetensors, or a name on the Hugging Face hub.",
    ),
]


def import_(
    model: HuggingFaceModel,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the new run.")],
    revision: Annotated[
        str | None,
        typer.Option(help="Branch, tag or commit of a model on the hub. Default: main."),
    ] = None,
) -> None:
    """Convert a Hugging Face model (BERT, GPT-2, ViT and others) into a run.

    Models of the hub need `pip install 'regard[hub]'`. Code and pickles are never downloaded.
    """
    imported_run = import_run(model, run, revision=revision)
    weights = sum(weight.numel() for weight in imported_run.model.parameters())
    print(
        f"{run}: {imported_run.settings.model.kind}, {weights:,} weights, task "
        f"{imported_run.settings.task}"
    )


def export(
    run: RunArgument,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="New folder for the model, config and tokenizer.")
    ],
    to: Annotated[
        str,
        typer.Option(
            help="Format: huggingface, ctranslate2 (`pip install 'regard[ct2]'`) or onnx "
            "(`pip install 'regard[onnx]'`).",
        ),
    ] = "huggingface",
    int8: Annotated[
        bool,
        typer.Option("--int8", help="Round the weights to 8 bits; for ctranslate2 only."),
    ] = False,
) -> None:
    """Convert a run into a folder for transformers, CTranslate2 or an ONNX runtime."""
    export_run(run, folder, to=check_export_format(to), int8=int8)
    print(f"{folder}: written; {READERS[to]} reads it")
