"""Standard MIDI Files of format 0, which have one track.

See "Standard MIDI Files 1.0" (MIDI Manufacturers Association, 1996).
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from regard.errors import InputError

MidiNote = tuple[int, Fraction, Fraction]
"""Pitch from 0 to 127, start and length in quarter notes."""
TICKS_PER_QUARTER = 480
NOTE_ON_VELOCITY, NOTE_OFF_VELOCITY = 80, 64
NOTE_ON, NOTE_OFF, META_EVENT = 0x90, 0x80, 0xFF
TRACK_NAME, END_OF_TRACK, SET_TEMPO = 0x03, 0x2F, 0x51
MICROSECONDS_PER_MINUTE = 60_000_000


def notes_from_roll(steps: Sequence[Sequence[int]]) -> list[MidiNote]:
    """Return the notes of a piano roll, whose steps are quarter notes; repeated keys are held."""
    notes, open_since = list[MidiNote](), dict[int, int]()
    for time, step in enumerate([*steps, ()]):
        for pitch in sorted(set(open_since) - set(step)):
            start = open_since.pop(pitch)
            notes.append((pitch, Fraction(start), Fraction(time - start)))
        for pitch in step:
            open_since.setdefault(pitch, time)
    return sorted(notes, key=lambda note: (note[1], note[0]))


def midi_bytes(notes: Iterable[MidiNote], *, tempo: int = 90, name: str = "") -> bytes:
    """Return a MIDI file with these notes; the tempo is in quarter notes per minute."""
    if not 4 <= tempo <= 1000:
        raise InputError(f"tempo must be from 4 to 1000 quarter notes per minute, not {tempo}")
    events = list[tuple[int, int, bytes]]()
    for pitch, start, length in notes:
        if not 0 <= pitch <= 127 or start < 0 or length <= 0:
            raise InputError(
                f"({pitch}, {start}, {length}) is not a note; give a pitch from 0 to 127, a start "
                "from 0 and a positive length"
            )
        first, last = round(start * TICKS_PER_QUARTER), round((start + length) * TICKS_PER_QUARTER)
        events.append((first, NOTE_ON, bytes([NOTE_ON, pitch, NOTE_ON_VELOCITY])))
        events.append((max(last, first + 1), NOTE_OFF, bytes([NOTE_OFF, pitch, NOTE_OFF_VELOCITY])))
    events.sort()  # at equal times NOTE_OFF, which has the lower number, comes first
    track = variable_length(0) + meta_event(
        SET_TEMPO, round(MICROSECONDS_PER_MINUTE / tempo).to_bytes(3)
    )
    if name:
        track = variable_length(0) + meta_event(TRACK_NAME, name.encode()) + track
    now = 0
    for time, _, event in events:
        track += variable_length(time - now) + event
        now = time
    track += variable_length(0) + meta_event(END_OF_TRACK, b"")
    header = (0).to_bytes(2) + (1).to_bytes(2) + TICKS_PER_QUARTER.to_bytes(2)
    return chunk(b"MThd", header) + chunk(b"MTrk", track)


def chunk(kind: bytes, data: bytes) -> bytes:
    return kind + len(data).to_bytes(4) + data


def meta_event(kind: int, data: bytes) -> bytes:
    return bytes([META_EVENT, kind]) + variable_length(len(data)) + data


def variable_length(number: int) -> bytes:
    """Encode a number in groups of seven bits, the highest first; bit 8 marks all but the last."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(0x80 | (number & 0x7F))
    return bytes(reversed(groups))
