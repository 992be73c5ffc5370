"""Notes -> a Standard MIDI File (format 0: one track), as bytes for the caller to write.

Notes are (pitch, start, length), in quarter notes. See "Standard MIDI Files 1.0" (MIDI
Manufacturers Association, 1996).
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction

Note = tuple[int, Fraction, Fraction]
TICKS = 480  # of a quarter note
LOUD, SOFT = 80, 64  # how quickly keys go down, and up
ON, OFF, META = 0x90, 0x80, 0xFF
NAME, END, TEMPO = 0x03, 0x2F, 0x51
MINUTE = 60_000_000  # microseconds


def held(steps: Sequence[Sequence[int]]) -> list[Note]:
    """The notes of a piano roll, a step a quarter note; a key that sounds on is held."""
    found, open_since = list[Note](), dict[int, int]()
    for time, step in enumerate([*steps, ()]):
        for pitch in sorted(set(open_since) - set(step)):
            start = open_since.pop(pitch)
            found.append((pitch, Fraction(start), Fraction(time - start)))
        for pitch in step:
            open_since.setdefault(pitch, time)
    return sorted(found, key=lambda note: (note[1], note[0]))


def midi(notes: Iterable[Note], *, tempo: int = 90, name: str = "") -> bytes:
    """A file with these notes, on the first channel, at so many quarter notes a minute."""
    if not 4 <= tempo <= 1000:
        raise ValueError(f"tempo must be 4 to 1000 quarter notes a minute, not {tempo}")
    events = list[tuple[int, int, bytes]]()
    for pitch, start, length in notes:
        if not 0 <= pitch <= 127 or start < 0 or length <= 0:
            raise ValueError(f"({pitch}, {start}, {length}) is no note: pitch, start and length")
        first, last = round(start * TICKS), round((start + length) * TICKS)
        events.append((first, ON, bytes([ON, pitch, LOUD])))
        events.append((max(last, first + 1), OFF, bytes([OFF, pitch, SOFT])))
    events.sort()  # at one time, keys go up (a lower number) before they go down
    track = delta(0) + meta(TEMPO, round(MINUTE / tempo).to_bytes(3))
    if name:
        track = delta(0) + meta(NAME, name.encode()) + track
    now = 0
    for time, _, event in events:
        track += delta(time - now) + event
        now = time
    track += delta(0) + meta(END, b"")
    header = (0).to_bytes(2) + (1).to_bytes(2) + TICKS.to_bytes(2)
    return chunk(b"MThd", header) + chunk(b"MTrk", track)


def chunk(kind: bytes, data: bytes) -> bytes:
    return kind + len(data).to_bytes(4) + data


def meta(kind: int, data: bytes) -> bytes:
    return bytes([META, kind]) + delta(len(data)) + data


def delta(number: int) -> bytes:
    """A number in groups of seven bits, the highest first; all but the last are marked."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(0x80 | (number & 0x7F))
    return bytes(reversed(groups))
