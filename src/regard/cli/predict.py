"""`regard predict`: lines in, lines out."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from regard.train.run import Run
from regard.view.mark import marked
from regard.view.terminal import Surface
from regard.view.under import under

STDIN = "standard input:{}"


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
    run, surface = Run.load(folder), Surface.of(Console())
    texts, place = (inputs, "input {}") if inputs else (decoded(sys.stdin.buffer), STDIN)
    for text, reply in zip(texts, run.reply(texts, place), strict=True):
        if as_json:
            print(json.dumps(reply.facts | run.further(text), ensure_ascii=False))
        elif reply.parts and surface.ink in ("256", "truecolor"):
            print(marked(reply.parts))
        elif reply.below and surface.ink in ("256", "truecolor"):
            print(under(*reply.below, surface), end="\n\n")
        else:
            print(reply.text)


def decoded(lines: Iterable[bytes]) -> list[str]:
    found: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(line.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"standard input:{number}: byte {error.start + 1} is 0x{line[error.start]:02x}, "
                "which is not UTF-8; convert it, as with iconv -f LATIN1 -t UTF-8"
            ) from None
    return found
