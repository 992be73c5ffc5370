"""`regard play`: a piece of music from a run, as MIDI or ABC, and as a picture."""

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.data.formats.abc_notation import parse_tune
from regard.files import write_atomic
from regard.train.music import PianoRollRun, parse_beginning
from regard.train.run import Run
from regard.train.tunes import TuneRun
from regard.view.midi import MidiNote, midi_bytes, notes_from_roll

MIDI_SUFFIXES = (".mid", ".midi")
OUTPUT_SUFFIXES = {"music": (*MIDI_SUFFIXES, ".json"), "tunes": (*MIDI_SUFFIXES, ".abc")}
DEFAULT_TEMPO = 90


def play(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    beginning: Annotated[
        str,
        typer.Argument(help='How it begins: "[[60, 64, 67]]", or "M:6/8" for a tune; or nothing.'),
    ] = "",
    save: Annotated[
        Path | None, typer.Option(help="A file to write: .mid; .json (rolls) or .abc (tunes).")
    ] = None,
    piano_roll: Annotated[Path | None, typer.Option(help="A piano roll to draw: .png.")] = None,
    max_length: Annotated[
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
    tempo: Annotated[int, typer.Option(help="Quarter notes a minute, of MIDI.")] = DEFAULT_TEMPO,
) -> None:
    """Draw a piece of music from RUN and write it to files."""
    run = Run.load(folder)
    if not isinstance(run, PianoRollRun | TuneRun):
        raise ValueError(f"{folder}: holds a run of task {run.settings.task!r}, which has no music")
    check_options(
        run.settings.run_kind, save, piano_roll, {"max-length": max_length, "voices": voices}
    )
    if temperature is not None and not 0 < temperature < math.inf:
        raise ValueError(f"--temperature must be positive, not {temperature}")
    decode_settings = {"max_length": max_length, "seed": seed, "temperature": temperature}
    override_decoding(
        run, {name: value for name, value in decode_settings.items() if value is not None}
    )
    if isinstance(run, TuneRun):
        text, notes = compose_tune(run, beginning)
    else:
        text, notes = compose_roll(run, beginning, voices)
    title = f"{run.settings.model.kind}, seed {run.settings.decode.seed}"
    picture_data = None if piano_roll is None else draw_piano_roll(notes, title)
    if save is not None:
        data = (
            midi_bytes(notes, tempo=tempo, name=title)
            if save.suffix in MIDI_SUFFIXES
            else text.encode()
        )
        write_atomic(save, data)
    if piano_roll is not None and picture_data is not None:
        write_atomic(piano_roll, picture_data)
    if save is None and piano_roll is None:
        print(text, end="")
    else:
        end = max((start + length for _, start, length in notes), default=0)
        paths = " and ".join(str(path) for path in (save, piano_roll) if path is not None)
        print(f"{paths}: {len(notes)} notes, {float(end):g} quarter notes long")


def check_options(
    kind: str, save: Path | None, piano_roll: Path | None, roll_options: dict[str, int | None]
) -> None:
    """What cannot be done is said before the work."""
    if save is not None and save.suffix not in OUTPUT_SUFFIXES[kind]:
        raise ValueError(
            f"--save {save}: must end in {', '.join(OUTPUT_SUFFIXES[kind])} for this run"
        )
    if piano_roll is not None and piano_roll.suffix != ".png":
        raise ValueError(f"--piano-roll {piano_roll}: must end in .png")
    for name, value in roll_options.items():
        if value is not None and kind == "tunes":
            raise ValueError(f"--{name} is for piano rolls, and this run writes tunes")


def override_decoding(run: Any, changes: dict[str, Any]) -> None:
    """The run, with another way to draw."""
    decode = type(run.settings.decode).model_validate(run.settings.decode.model_dump() | changes)
    run.settings = run.settings.model_copy(update={"decode": decode})


def compose_roll(
    run: PianoRollRun, beginning: str, voices: int | None
) -> tuple[str, list[MidiNote]]:
    composition = run(parse_beginning(beginning, "BEGINNING"), voices)
    return json.dumps(composition.steps) + "\n", notes_from_roll(composition.steps)


def compose_tune(run: TuneRun, beginning: str) -> tuple[str, list[MidiNote]]:
    [composition] = run.compose([beginning], "BEGINNING")
    notes = [
        (n.pitch, n.start * 4, n.length * 4)
        for n in parse_tune(composition.text)
        if n.pitch is not None
    ]
    return composition.to_abc(), notes


def draw_piano_roll(notes: list[MidiNote], title: str) -> bytes:
    from regard.view.piano_roll import piano_roll_png

    return piano_roll_png(notes, title)
