"""`regard predict`: lines in, lines out."""

import json
import sys
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
    lines: list[str] = []
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            lines.append(line.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError as error:
            raise ValueError(f"standard input, line {number}: is not UTF-8 ({error})") from error
    for line, outputs in zip(lines, run.predict(lines), strict=True):
        if as_json:
            found = [{"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs]
            print(json.dumps({"source": line, "outputs": found}, ensure_ascii=False))
        else:
            print(outputs[0].text)
