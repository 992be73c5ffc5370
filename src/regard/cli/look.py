"""`regard look`: what a run looked at while it wrote."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from regard.train.translate import TranslateRun
from regard.view.terminal import Surface, heat, scale


def look(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    text: Annotated[str, typer.Argument(help="What to translate.")],
    target: Annotated[
        str | None, typer.Option(help="Look at this output, not at the model's own.")
    ] = None,
) -> None:
    """Translate TEXT and show which source tokens each target token looked at."""
    run = TranslateRun.load(folder)
    run.check([text], "TEXT")
    print(picture(run, text, Surface.of(Console()), target))


def picture(run: TranslateRun, text: str, surface: Surface, target: str | None = None) -> str:
    """The output, and its map: rows are what was written, columns what was read."""
    if not run.model.cross:
        raise ValueError(f"model {run.settings.model.kind} has no attention to the source")
    if target is None:
        best = run(text)
        target, ids = best.text, best.ids
    else:
        ids = run.task.target.ids([target])[0]
    seen = run.task.align(text, ids)
    return (
        f"{text} -> {target}\n\n"
        f"{heat(seen.weights.tolist(), seen.target, seen.source, surface)}\n\n"
        f"weight: {scale(surface)}"
    )
