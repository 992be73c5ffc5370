"""`regard predict`: lines in, lines out."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from regard.train.run import Run


def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines with all outputs and their scores.")
    ] = False,
) -> None:
    """Answer each line of standard input, on standard output, in order."""
    run = Run.load(folder)
    lines = decoded(sys.stdin.buffer)
    check_lengths(run, lines, "standard input:{}")
    for line, outputs in zip(lines, run.predict(lines), strict=True):
        if as_json:
            found = [{"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs]
            print(json.dumps({"source": line, "outputs": found}, ensure_ascii=False))
        else:
            print(outputs[0].text)


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


def check_lengths(run: Run, texts: Sequence[str], place: str) -> None:
    """Say which text is longer than any that was trained on; nothing is cut off in silence."""
    for number, ids in enumerate(run.task.source.ids(texts), 1):
        if len(ids) > run.longest:
            raise ValueError(
                f"{place.format(number)}: {len(ids)} tokens, but the run has learnt from texts of "
                f"{run.longest} at most; split it into sentences, or train with a larger "
                f"train.longest"
            )
