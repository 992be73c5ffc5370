"""`regard predict`: lines in, lines out."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from regard.train.run import Run
from regard.view.highlight import render_highlighted
from regard.view.sequence import render_annotated_sequence
from regard.view.terminal import Surface

STDIN_LOCATION = "standard input:{}"


def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="INPUT…", help="What to answer, such as photo.png; else stdin."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines with all outputs and their scores.")
    ] = False,
) -> None:
    """Answer each INPUT, or each line of standard input, on standard output, in order.

    For a run of pictures, each is the path of one.
    """
    run, surface = Run.load(folder), Surface.from_console(Console())
    texts, location_format = (
        (inputs, "input {}") if inputs else (decoded_lines(sys.stdin.buffer), STDIN_LOCATION)
    )
    for text, prediction in zip(texts, run.predict_lines(texts, location_format), strict=True):
        if as_json:
            print(json.dumps(prediction.data | run.details(text), ensure_ascii=False))
        elif prediction.spans and surface.ink in ("256", "truecolor"):
            print(render_highlighted(prediction.spans))
        elif prediction.annotation and surface.ink in ("256", "truecolor"):
            print(render_annotated_sequence(*prediction.annotation, surface), end="\n\n")
        else:
            print(prediction.text)


def decoded_lines(lines: Iterable[bytes]) -> list[str]:
    texts: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            texts.append(line.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"standard input:{number}: byte {error.start + 1} is 0x{line[error.start]:02x}, "
                "which is not UTF-8; convert it, as with iconv -f LATIN1 -t UTF-8"
            ) from None
    return texts
