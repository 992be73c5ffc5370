"""`regard play`: compose a piece of music, as MIDI, ABC or a piano roll."""

import math
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import DeviceOption, RunArgument
from regard.errors import InputError
from regard.files import write_atomic
from regard.run import Run
from regard.tasks.protocols import MusicComposer
from regard.view.midi import MidiNote, midi_bytes

MIDI_SUFFIXES = (".mid", ".midi")
DEFAULT_TEMPO = 90

TempoOption = Annotated[int, typer.Option(help="Tempo of MIDI files, in quarter notes per minute.")]


def play(
    folder: RunArgument,
    beginning: Annotated[
        str,
        typer.Argument(
            metavar="BEGINNING",
            help='Beginning of the piece: "[[60, 64, 67]]" (pitches of each step of a piano roll) '
            'or "M:6/8" (ABC). Default: empty.',
        ),
    ] = "",
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File to write: .mid; .json (piano rolls) or .abc (tunes)."
        ),
    ] = None,
    piano_roll: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for a plot of the notes: .png.")
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of steps to add (piano rolls only). Default: decode.max_length."
        ),
    ] = None,
    voices: Annotated[
        int | None,
        typer.Option(
            min=1, max=88, help="Number of keys in each step (piano rolls only). Default: any."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random seed of the piece. Default: decode.seed.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Sampling temperature, above 0; lower means likelier notes. "
            "Default: decode.temperature."
        ),
    ] = None,
    tempo: TempoOption = DEFAULT_TEMPO,
    device: DeviceOption = None,
) -> None:
    """Compose a piece of music with RUN; print it, or write it to files."""
    run = Run.load(folder, device=device or "auto")
    composer = music_composer(folder, run)
    check_options(composer, save, piano_roll, {"max-length": max_length, "voices": voices})
    if temperature is not None and not 0 < temperature < math.inf:
        raise InputError(f"--temperature must be positive and finite, not {temperature}")
    decoding = {"max_length": max_length, "seed": seed, "temperature": temperature}
    given = {name: value for name, value in decoding.items() if value is not None}
    run = run.override([f"decode.{name}={value}" for name, value in given.items()])
    composer = music_composer(folder, run)
    [piece] = composer.predict([composer.parse(beginning, "BEGINNING")], voices=voices)
    if save is None and piano_roll is None:
        print(piece.file_text, end="")
        return
    title = f"{run.settings.model.kind}, seed {decode_seed(run)}"
    write_piece(piece.file_text, piece.notes, title, save, piano_roll, tempo)


def write_piece(
    text: str,
    notes: list[MidiNote],
    title: str,
    save: Path | None,
    piano_roll: Path | None,
    tempo: int,
) -> None:
    """Write a piece as MIDI or text, and a plot of its notes; print what was written."""
    png = None if piano_roll is None else draw_piano_roll(notes, title)
    if save is not None:
        is_midi = save.suffix in MIDI_SUFFIXES
        write_atomic(save, midi_bytes(notes, tempo=tempo, name=title) if is_midi else text.encode())
    if piano_roll is not None and png is not None:
        write_atomic(piano_roll, png)
    end = max((start + length for _, start, length in notes), default=0)
    paths = " and ".join(str(path) for path in (save, piano_roll) if path is not None)
    print(f"{paths}: {len(notes)} notes, {float(end):g} quarter notes long")


def music_composer(folder: Path, run: Run) -> MusicComposer:
    """Return the task of a run if it composes music."""
    task: object = run.task
    if not isinstance(task, MusicComposer):
        raise InputError(f"{folder}: the task {run.task.name} does not compose; give a music run")
    return task


def check_options(
    composer: MusicComposer,
    save: Path | None,
    piano_roll: Path | None,
    options: dict[str, int | None],
) -> None:
    """Check that this run supports the options, before any work is done."""
    suffixes = (*MIDI_SUFFIXES, composer.text_suffix)
    if save is not None and save.suffix not in suffixes:
        raise InputError(f"--save {save}: must end in {', '.join(suffixes)} for this run")
    if piano_roll is not None and piano_roll.suffix != ".png":
        raise InputError(f"--piano-roll {piano_roll}: must end in .png")
    for name, value in options.items():
        if value is not None and name not in composer.play_options:
            raise InputError(f"--{name} does not support this kind of music; leave it out")


def decode_seed(run: Run) -> object:
    return getattr(getattr(run.settings, "decode", None), "seed", None)


def draw_piano_roll(notes: list[MidiNote], title: str) -> bytes:
    from regard.view.piano_roll import piano_roll_png

    return piano_roll_png(notes, title)
