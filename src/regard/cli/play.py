"""`regard play`: a piece of music from a run, as MIDI or ABC, and as a picture."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.files import write_atomic
from regard.run import Run
from regard.tasks.protocols import MusicComposer
from regard.view.midi import MidiNote, midi_bytes

MIDI_SUFFIXES = (".mid", ".midi")
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
    check_options(folder, run.task, save, piano_roll, {"max-length": max_length, "voices": voices})
    if temperature is not None and not 0 < temperature < math.inf:
        raise ValueError(f"--temperature must be positive, not {temperature}")
    decoding = {"max_length": max_length, "seed": seed, "temperature": temperature}
    run = run.override(
        [f"decode.{name}={value}" for name, value in decoding.items() if value is not None]
    )
    composer: Any = run.task
    [piece] = composer.predict([composer.parse(beginning, "BEGINNING")], voices=voices)
    text, notes = piece.file_text, piece.notes
    title = f"{run.settings.model.kind}, seed {decode_seed(run)}"
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
    folder: Path,
    task: object,
    save: Path | None,
    piano_roll: Path | None,
    options: dict[str, int | None],
) -> None:
    """Raise an error for what this run cannot do, before any work is done."""
    if not isinstance(task, MusicComposer):
        raise ValueError(f"{folder}: holds a run that does not compose music")
    suffixes = (*MIDI_SUFFIXES, task.text_suffix)
    if save is not None and save.suffix not in suffixes:
        raise ValueError(f"--save {save}: must end in {', '.join(suffixes)} for this run")
    if piano_roll is not None and piano_roll.suffix != ".png":
        raise ValueError(f"--piano-roll {piano_roll}: must end in .png")
    for name, value in options.items():
        if value is not None and name not in task.play_options:
            raise ValueError(f"--{name} does not support this kind of music")


def decode_seed(run: Run) -> int:
    settings: Any = run.settings
    return settings.decode.seed


def draw_piano_roll(notes: list[MidiNote], title: str) -> bytes:
    from regard.view.piano_roll import piano_roll_png

    return piano_roll_png(notes, title)
