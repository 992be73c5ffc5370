"""MIDI files as music21 reads them, byte by byte where that is short."""

from fractions import Fraction

import pytest

from regard.view.midi import midi_bytes, notes_from_roll, variable_length


def read(data):
    music21 = pytest.importorskip("music21")
    found = music21.midi.MidiFile()
    found.readstr(data)
    assert found.format == 0
    [track] = found.tracks
    return found, track


def sounding(data):
    """(pitch, start, length) in quarter notes."""
    found, track = read(data)
    now, begun, notes = 0, {}, []
    for event in track.events:
        if event.isDeltaTime():
            now += event.time
        elif event.isNoteOn():
            assert event.pitch not in begun
            begun[event.pitch] = now
        elif event.isNoteOff():
            start = begun.pop(event.pitch)
            per = found.ticksPerQuarterNote
            notes.append((event.pitch, Fraction(start, per), Fraction(now - start, per)))
    assert not begun
    return sorted(notes, key=lambda note: (note[1], note[0]))


def test_held():
    steps = [(60, 64), (60, 67), (), (60,)]
    assert notes_from_roll(steps) == [(60, 0, 2), (64, 0, 1), (67, 1, 1), (60, 3, 1)]
    assert notes_from_roll([]) == []


def test_what_is_written_is_read():
    notes = [
        (60, Fraction(0), Fraction(2)),
        (64, Fraction(0), Fraction(1, 3)),
        (60, Fraction(2), Fraction(1)),
        (108, Fraction(300), Fraction(7, 2)),
    ]
    assert sounding(midi_bytes(notes)) == notes  # 60 is struck anew where it ends


def test_bytes():
    assert midi_bytes([(60, Fraction(0), Fraction(1))], tempo=120, name="a") == bytes.fromhex(
        "4d546864 00000006 0000 0001 01e0"
        "4d54726b 00000019"
        "00 ff0301 61"
        "00 ff5103 07a120"
        "00 903c50"
        "8360 803c40"
        "00 ff2f00"
    )


def test_numbers_of_any_length():
    """The examples of the standard."""
    for number, want in ((0, "00"), (0x7F, "7f"), (0x80, "8100"), (0x3FFF, "ff7f")):
        assert variable_length(number).hex() == want
    assert variable_length(0x0FFFFFFF).hex() == "ffffff7f"
    assert variable_length(0x100000).hex() == "c08000"


def test_what_is_wrong():
    for note in (
        (128, Fraction(0), Fraction(1)),
        (60, Fraction(-1), Fraction(1)),
        (60, Fraction(0), Fraction(0)),
    ):
        with pytest.raises(ValueError, match="is not a note"):
            midi_bytes([note])
    with pytest.raises(ValueError, match="tempo must be from 4 to 1000"):
        midi_bytes([], tempo=0)
