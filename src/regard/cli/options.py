"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting of the run for this call, such as decode.width=10. Repeatable.",
    ),
]
SplitOption = Annotated[str, typer.Option(help="Split of the run's data.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU threads. Default: all cores.")]
