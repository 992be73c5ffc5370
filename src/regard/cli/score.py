"""`regard score`: the standard metrics of a run, with their signatures."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from regard.cli.progress import progress_bar
from regard.train.run import Run
from regard.train.translate import TranslateRun

TokenizeOption = Annotated[
    Literal["13a", "none", "intl", "char", "zh"],
    typer.Option(help="How BLEU finds words; none: the data is tokenised already."),
]


def score(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    tokenize: TokenizeOption = "13a",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Score a run on a split of its data by the standard metrics of its task."""
    run = Run.load(folder)
    records = list(run.corpus().read(split))
    with progress_bar("scoring", len(records)) as progress:
        options = {"tokenize": tokenize} if isinstance(run, TranslateRun) else {}
        metrics = run.score(records, progress.advance, **options)
    if as_json:
        print(json.dumps(metrics, indent=1))
        return
    missing = metrics.pop("not_in_perplexity", 0)
    width = max(
        12, 2 + max(len(name) for name, value in metrics.items() if not isinstance(value, str))
    )
    for name, value in metrics.items():
        if isinstance(value, float):
            signature = metrics.get(f"{name}_signature", "")
            print(f"{name:{width}}{value:8.2f}  {signature}".rstrip())
        elif isinstance(value, int):
            print(f"{name:{width}}{value:8}")
    if missing:
        print(f"{missing} of them are too long for the perplexity, and not in it")
