"""`regard import` and `regard export`: convert Hugging Face folders into runs, and back."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import RunArgument
from regard.convert.run import export_run, import_run

HuggingFaceFolder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Folder with config.json and model.safetensors."),
]


def import_(
    folder: HuggingFaceFolder,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the new run.")],
) -> None:
    """Convert a Hugging Face folder (BERT, GPT-2, ViT, Marian and others) into a run."""
    imported_run = import_run(folder, run)
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
) -> None:
    """Convert a run into a folder that `from_pretrained` of transformers reads."""
    export_run(run, folder)
    print(f"{folder}: written; from_pretrained of transformers reads it")
