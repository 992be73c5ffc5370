"""`regard score`: the standard metrics of a run, with their signatures."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from regard.cli.progress import bar
from regard.train.run import Run
from regard.train.translate import TranslateRun

Tokenize = Annotated[
    Literal["13a", "none", "intl", "char", "zh"],
    typer.Option(help="How BLEU finds words; none: the data is tokenised already."),
]


def score(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    tokenize: Tokenize = "13a",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Score a run on a split of its data by the standard metrics of its task."""
    run = Run.load(folder)
    records = list(run.corpus().read(split))
    with bar("scoring", len(records)) as shown:
        words = {"tokenize": tokenize} if isinstance(run, TranslateRun) else {}
        found = run.score(records, shown.advance, **words)
    if as_json:
        print(json.dumps(found, indent=1))
        return
    missing = found.pop("not_in_perplexity", 0)
    wide = max(
        12, 2 + max(len(name) for name, value in found.items() if not isinstance(value, str))
    )
    for name, value in found.items():
        if isinstance(value, float):
            signature = found.get(f"{name}_signature", "")
            print(f"{name:{wide}}{value:8.2f}  {signature}".rstrip())
        elif isinstance(value, int):
            print(f"{name:{wide}}{value:8}")
    if missing:
        print(f"{missing} of them are too long for the perplexity, and not in it")
