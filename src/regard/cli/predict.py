"""`regard predict`: one prediction for each line of input."""

import json
import sys
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console

from regard.cli.options import RunArgument, SetOption
from regard.errors import InputError
from regard.run import Run
from regard.view.highlight import render_highlighted
from regard.view.sanitize import terminal_text
from regard.view.sequence import render_annotated_sequence
from regard.view.terminal import Surface

STDIN_LOCATION = "standard input:{}"


def predict(
    folder: RunArgument,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT…",
            help="Inputs, such as a sentence or photo.png. Default: lines of standard input.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object per input, with all outputs and their scores."
        ),
    ] = False,
    overrides: SetOption = None,
) -> None:
    """Print one prediction for each INPUT, or for each line of standard input, in order.

    The input of an image run is the path of an image.
    """
    run, surface = Run.load(folder).override(overrides or ()), Surface.from_console(Console())
    lines, location = (
        (inputs, "input {}") if inputs else (decoded_lines(sys.stdin.buffer), STDIN_LOCATION)
    )
    records = run.records(lines, location)
    for record, prediction in zip(records, run.predict(records), strict=True):
        if as_json:
            fields = {**record, **prediction.as_dict(), **run.task.details(record)}
            print(json.dumps(fields, ensure_ascii=False))
        elif prediction.spans and surface.ink in ("256", "truecolor"):
            print(render_highlighted(prediction.spans))
        elif prediction.annotation and surface.ink in ("256", "truecolor"):
            print(render_annotated_sequence(*prediction.annotation, surface), end="\n\n")
        else:
            print(terminal_text(prediction.text))


def decoded_lines(lines: Iterable[bytes]) -> list[str]:
    texts: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            encoding = "utf-8-sig" if number == 1 else "utf-8"  # some programs write a BOM
            texts.append(line.decode(encoding).rstrip("\r\n"))
        except UnicodeDecodeError as error:
            raise InputError(
                f"standard input:{number}: byte {error.start + 1} is 0x{line[error.start]:02x}, "
                "which is not UTF-8; convert it, as with iconv -f LATIN1 -t UTF-8"
            ) from None
    return texts
