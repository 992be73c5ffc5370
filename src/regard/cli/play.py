"""`regard play`: a piece of music from a run, as MIDI or ABC, and as a picture."""

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.config.whole import write_whole
from regard.corpora.abc import played
from regard.train.music import RollRun, beginning_of
from regard.train.run import Run
from regard.train.tunes import TuneRun
from regard.view.midi import Note, held, midi

MIDI = (".mid", ".midi")
WRITTEN = {"music": (*MIDI, ".json"), "tunes": (*MIDI, ".abc")}
TEMPO = 90


def play(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    beginning: Annotated[
        str,
        typer.Argument(help='How it begins: "[[60, 64, 67]]", or "M:6/8" for a tune; or nothing.'),
    ] = "",
    to: Annotated[
        Path | None, typer.Option(help="A file to write: .mid; .json (rolls) or .abc (tunes).")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="A piano roll to draw: .png.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps to add (rolls); decode.max_length else.")
    ] = None,
    voices: Annotated[
        int | None, typer.Option(min=1, max=88, help="Keys that sound in each step (rolls).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Another seed, another piece; decode.seed else.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Below 1, likely notes gain; decode.temperature else.")
    ] = None,
    tempo: Annotated[int, typer.Option(help="Quarter notes a minute, of MIDI.")] = TEMPO,
) -> None:
    """Draw a piece of music from RUN and write it to files."""
    run = Run.load(folder)
    if not isinstance(run, RollRun | TuneRun):
        raise ValueError(f"{folder}: holds a run of task {run.settings.task!r}, which has no music")
    check(run.settings.run, to, picture, {"steps": steps, "voices": voices})
    if temperature is not None and not 0 < temperature < math.inf:
        raise ValueError(f"--temperature must be positive, not {temperature}")
    told = {"max_length": steps, "seed": seed, "temperature": temperature}
    settle(run, {name: value for name, value in told.items() if value is not None})
    if isinstance(run, TuneRun):
        text, notes = tune(run, beginning)
    else:
        text, notes = piece(run, beginning, voices)
    title = f"{run.settings.model.kind}, seed {run.settings.decode.seed}"
    drawn = None if picture is None else draw(notes, title)
    if to is not None:
        data = midi(notes, tempo=tempo, name=title) if to.suffix in MIDI else text.encode()
        write_whole(to, data)
    if picture is not None and drawn is not None:
        write_whole(picture, drawn)
    if to is None and picture is None:
        print(text, end="")
    else:
        end = max((start + length for _, start, length in notes), default=0)
        places = " and ".join(str(place) for place in (to, picture) if place is not None)
        print(f"{places}: {len(notes)} notes, {float(end):g} quarter notes long")


def check(
    kind: str, to: Path | None, picture: Path | None, of_rolls: dict[str, int | None]
) -> None:
    """What cannot be done is said before the work."""
    if to is not None and to.suffix not in WRITTEN[kind]:
        raise ValueError(f"--to {to}: must end in {', '.join(WRITTEN[kind])} for this run")
    if picture is not None and picture.suffix != ".png":
        raise ValueError(f"--picture {picture}: must end in .png")
    for name, value in of_rolls.items():
        if value is not None and kind == "tunes":
            raise ValueError(f"--{name} is for piano rolls, and this run writes tunes")


def settle(run: Any, told: dict[str, Any]) -> None:
    """The run, with another way to draw."""
    decode = type(run.settings.decode).model_validate(run.settings.decode.model_dump() | told)
    run.settings = run.settings.model_copy(update={"decode": decode})


def piece(run: RollRun, beginning: str, voices: int | None) -> tuple[str, list[Note]]:
    made = run(beginning_of(beginning, "BEGINNING"), voices)
    return json.dumps(made.steps) + "\n", held(made.steps)


def tune(run: TuneRun, beginning: str) -> tuple[str, list[Note]]:
    [made] = run.compose([beginning], "BEGINNING")
    notes = [(n.pitch, n.start * 4, n.length * 4) for n in played(made.text) if n.pitch is not None]
    return made.numbered(), notes


def draw(notes: list[Note], title: str) -> bytes:
    from regard.view.roll import piano_roll

    return piano_roll(notes, title)
