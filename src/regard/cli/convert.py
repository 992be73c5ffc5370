"""`regard import` and `regard export`: folders of Hugging Face's into runs, and back."""

from pathlib import Path
from typing import Annotated

import typer

from regard.convert.run import export_run, import_run

HuggingFaceFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A folder with config.json and model.safetensors.")
]


def import_(
    folder: HuggingFaceFolder,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Where the run goes.")],
) -> None:
    """Make a run of a model that others have trained: BERT, GPT-2 and their kin."""
    imported_run, notes = import_run(folder, run)
    for line in notes:
        print(line)
    weights = sum(weight.numel() for weight in imported_run.model.parameters())
    print(
        f"{run}: {imported_run.settings.model.kind}, {weights:,} weights, task "
        f"{imported_run.settings.task}"
    )


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; a new folder.")],
) -> None:
    """Write a run's model as a folder that `transformers` reads."""
    export_run(run, folder)
    print(f"{folder}: written; transformers' from_pretrained reads it")
