"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
ConfigArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="TOML file, such as `regard init` writes, or the name of a preset.",
    ),
]
ChangesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE…", help="Settings that replace those of CONFIG, as in train.steps=500."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting of the run for this call, such as decode.width=10. Repeatable.",
    ),
]
SkipBadOption = Annotated[
    bool,
    typer.Option("--skip-bad", help="Skip rows of data files that cannot be read (data.skip_bad)."),
]
Int8Option = Annotated[
    bool, typer.Option("--int8", help="Multiply with weights of 8 bits: faster, a little coarser.")
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        help="Device: cpu, cuda, cuda:1 or mps. Default: the first of cuda, mps and cpu.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        help="Engine: built-in, ctranslate2 (`pip install 'regard[ct2]'`; transformer and gpt2), "
        "or auto: ctranslate2 where it finds the same outputs, else built-in.",
    ),
]
SplitOption = Annotated[str, typer.Option(help="Split of the run's data: train, dev or test.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU threads. Default: all cores.")]
GoldBaseOption = Annotated[
    int, typer.Option(min=0, max=1, help="Number of the first word in files of gold links.")
]


def with_skip_bad(changes: list[str] | None, skip_bad: bool) -> list[str]:
    """Return changes of settings that also skip bad rows, if asked."""
    return [*(changes or ()), *(["data.skip_bad=true"] if skip_bad else [])]
