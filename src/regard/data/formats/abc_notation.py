"""A parser of ABC notation (version 2.1, one voice): text -> notes.

`parse_tune` raises a ValueError with line and bar for unknown signs, unclosed groups, and bars
that do not fit the meter. A bar may be short at the beginning and the end of a tune or part, and
next to repeats, endings and double bars. It may never be long.
"""

import re
from fractions import Fraction
from typing import NamedTuple, Never

from regard.errors import InputError

FIELD = re.compile(r"([A-Za-z+]):\s*(.*?)\s*$")
LENGTH_PATTERN = r"(\d*)(/*)(\d*)"
NOTE = re.compile(r"([_^=]{0,2})([A-Ga-g])([,']*)" + LENGTH_PATTERN)
REST = re.compile("[zx]" + LENGTH_PATTERN)
BAR = re.compile(r"\[\|:?|:*\|[\]:|]*|::")
ENDING = re.compile(r"\[[1-9][0-9,.-]*|(?<=[|:])[1-9][0-9,.-]*")
TUPLET = re.compile(r"\(([2-9])(?::(\d*))?(?::(\d*))?")
CHORD = re.compile(r"\[([^\]\[|:\n]+)\]" + LENGTH_PATTERN)
IGNORED = re.compile(  # chord names, ornaments, grace notes, slurs, spaces
    r"\"[^\"\n]*\"|![^!\n]*!|\{[^}\n]*\}"
    r"|[~.uvHLMOPST](?=[\"~.{_^=A-Ga-gzx\[])|\((?!\d)|\)|[\s`]+|\\$"
)
INLINE_FIELD = re.compile(r"\[([A-Za-z]):\s*([^\]\n]*?)\s*\]")
TIE = re.compile("-")
BROKEN_RHYTHM = re.compile(r">{1,3}|<{1,3}")

SHARPS = "FCGDAEB"
TONICS = {name: n for n, name in enumerate(("Cb", "Gb", "Db", "Ab", "Eb", "Bb", "F"), -7)}
TONICS |= {name: n for n, name in enumerate(("C", "G", "D", "A", "E", "B", "F#", "C#"))}
TONICS |= {"G#": 8, "D#": 9, "A#": 10}
MODE_SHIFTS = {"": 0, "maj": 0, "ion": 0, "m": -3, "min": -3, "aeo": -3}
MODE_SHIFTS |= {"mix": -1, "dor": -2, "phr": -4, "lyd": 1, "loc": -5}
KEY = re.compile(r"([A-G][#b]?)\s*([A-Za-z]*)")
SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
ACCIDENTALS = {"^": 1, "_": -1, "=": 0}
TUPLET_TIMES = {2: 3, 3: 2, 4: 3, 6: 2, 8: 3}  # n notes in the time of m; others by the meter
FREE_METER = Fraction(0)


class Note(NamedTuple):
    """A note or a rest: MIDI `pitch` (None for a rest), `start` and `length` in whole notes."""

    pitch: int | None
    start: Fraction
    length: Fraction


def parse_tune(tune: str) -> list[Note]:
    """Return all notes in order; repeats are not expanded, notes of a chord share their start."""
    parser = AbcParser()
    lines = tune.split("\n")
    for number, line in enumerate(lines, 1):
        parser.line_number = number
        parser.read_line(line)
    parser.line_number = len(lines)
    return parser.finish()


def key_signature(text: str) -> dict[str, int]:
    """Return the accidentals of a key: "G" gives {"F": 1}."""
    match = KEY.match(text)
    mode = MODE_SHIFTS.get(match[2].lower()[:3]) if match else None
    if match is None or mode is None or match[1] not in TONICS:
        if text.lower().startswith(("none", "hp")) or not text:
            return {}
        raise InputError(f"K:{text} is not a key")
    sharps = TONICS[match[1]] + mode
    if not -7 <= sharps <= 7:
        raise InputError(f"K:{text} is not a key: it would have {abs(sharps)} accidentals")
    names = SHARPS[:sharps] if sharps >= 0 else SHARPS[::-1][:-sharps]
    return dict.fromkeys(names, 1 if sharps > 0 else -1)


def parse_meter(text: str) -> Fraction:
    """Return the length of a bar in whole notes; 0 for free meter."""
    if text in ("C", "C|"):
        return Fraction(1)
    if text.lower() == "none":
        return FREE_METER
    match = re.fullmatch(r"\(?(\d+(?:\+\d+)*)\)?/([1-9]\d*)", text)
    if match is None or not sum(map(int, match[1].split("+"))):
        raise InputError(f"M:{text} is not a meter like 6/8")
    return Fraction(sum(map(int, match[1].split("+"))), int(match[2]))


def length_factor(count: str, slashes: str, divisor: str) -> Fraction:
    """Return the factor of a length: 2, /2, 3/2, /, //."""
    if int(count or 1) == 0 or divisor == "0" or (divisor and not slashes):
        raise InputError(f"{count}{slashes}{divisor} is not a length")
    denominator = int(divisor) if divisor else 2 ** len(slashes)
    return Fraction(int(count or 1), denominator)


class AbcParser:
    """The state of parsing one tune."""

    def __init__(self) -> None:
        self.line_number, self.bar_number = 1, 1
        self.in_header, self.key, self.accidentals = True, dict[str, int](), dict[str, int]()
        self.meter, self.unit_length = FREE_METER, Fraction(0)
        self.notes, self.time, self.bar_start = list[Note](), Fraction(0), Fraction(0)
        self.may_be_short = True  # this bar begins a part
        self.short_bar_error = ""  # raised for the last bar if music follows
        self.tuplet: tuple[int, Fraction] = (0, Fraction(1))  # remaining notes, and their factor
        self.next_factor = Fraction(1)  # of the next note, after > or <
        self.last_indices: list[int] = []  # of the last note or chord
        self.is_tied = False

    def read_line(self, text: str) -> None:
        text = text.split("%", 1)[0].rstrip()
        field = FIELD.fullmatch(text)
        if field is not None and not text.startswith(("|:", "::")):
            self.read_field(field[1], field[2])
        elif text:
            if self.in_header:
                self.fail("notes before the key; add K:")
            self.read_music(text)

    def read_field(self, name: str, value: str) -> None:
        try:
            match name:
                case "K":
                    self.key, self.in_header, self.accidentals = key_signature(value), False, {}
                case "M":
                    self.meter = parse_meter(value)
                case "L":
                    match = re.fullmatch(r"1/([1-9]\d*)", value)
                    if match is None:
                        raise InputError(f"L:{value} is not a length like 1/8")
                    self.unit_length = Fraction(1, int(match[1]))
                case "V":
                    raise InputError("V: several voices are not supported")
        except ValueError as error:
            self.fail(str(error))
        if name in "KMP":  # a part may end, and begin, with a short bar
            self.may_be_short, self.short_bar_error = True, ""
            if name == "P" and not self.in_header:
                self.end_bar("||")

    def read_music(self, text: str) -> None:
        position = 0
        while position < len(text):
            position = self.read_token(text, position)

    def read_token(self, text: str, position: int) -> int:
        """Read one token and return the position after it."""
        if match := INLINE_FIELD.match(text, position):
            self.read_field(match[1], match[2])
        elif match := ENDING.match(text, position):
            self.end_bar("[1")
        elif match := BAR.match(text, position):
            self.end_bar(match[0])
        elif match := TUPLET.match(text, position):
            self.begin_tuplet(int(match[1]), match[2], match[3])
        elif match := IGNORED.match(text, position):
            pass
        elif match := BROKEN_RHYTHM.match(text, position):
            self.break_rhythm(match[0])
        elif self.last_indices and (match := TIE.match(text, position)):
            self.is_tied = True
        elif match := CHORD.match(text, position):
            self.read_chord(match[1], *match.group(2, 3, 4))
        elif match := NOTE.match(text, position):
            self.add_notes([match], self.note_length(*match.group(4, 5, 6)))
        elif match := REST.match(text, position):
            self.add_notes([], self.note_length(*match.group(1, 2, 3)))
        else:
            unclosed = {'"': "a name", "!": "an ornament", "{": "a grace note", "[": "a chord"}
            problem = (
                f"{unclosed[text[position]]} has no end"
                if text[position] in unclosed
                else "is not allowed here"
            )
            self.fail(f"column {position + 1}: {text[position]!r} {problem}")
        return match.end()

    def read_chord(self, content: str, *length: str) -> None:
        """Add a chord; its length is that of its first note times the factor after the chord."""
        notes, position = list[re.Match[str]](), 0
        while position < len(content):
            note = (
                NOTE.match(content, position)
                or IGNORED.match(content, position)
                or TIE.match(content, position)
            )
            if note is None:
                self.fail(f"{content[position]!r} is not a note, in the chord [{content}]")
            if note.re is NOTE:
                notes.append(note)
            position = note.end()
        if not notes:
            self.fail(f"no note in the chord [{content}]")
        self.add_notes(
            notes,
            self.note_length(*notes[0].group(4, 5, 6))
            * self.note_length(*length)
            / self.default_length,
        )
        self.is_tied = "-" in content

    @property
    def default_length(self) -> Fraction:
        """Return the length of a note without a factor: the L: field, or a default by the meter."""
        if self.unit_length:
            return self.unit_length
        return Fraction(1, 16) if 0 < self.meter < Fraction(3, 4) else Fraction(1, 8)

    def note_length(self, count: str, slashes: str, divisor: str) -> Fraction:
        try:
            return length_factor(count, slashes, divisor) * self.default_length
        except ValueError as error:
            self.fail(str(error))

    def add_notes(self, notes: list[re.Match[str]], length: Fraction) -> None:
        """Add simultaneous notes, or a rest if there are none; tied notes are prolonged."""
        if self.short_bar_error:
            raise InputError(self.short_bar_error)
        notes_left, factor = self.tuplet
        length *= factor * self.next_factor
        self.next_factor = Fraction(1)
        if notes_left:
            self.tuplet = (notes_left - 1, factor if notes_left > 1 else Fraction(1))
        tied_indices = (
            {self.notes[index].pitch: index for index in self.last_indices} if self.is_tied else {}
        )
        self.is_tied, self.last_indices = False, []
        for pitch in [self.note_pitch(note) for note in notes] or [None]:
            if pitch is not None and pitch in tied_indices:
                index = tied_indices[pitch]
                self.notes[index] = self.notes[index]._replace(
                    length=self.notes[index].length + length
                )
            else:
                index = len(self.notes)
                self.notes.append(Note(pitch, self.time, length))
            self.last_indices.append(index)
        self.time += length

    def note_pitch(self, note: re.Match[str]) -> int:
        signs, letter, octaves = note.group(1, 2, 3)
        name = letter + octaves
        if signs:
            self.accidentals[name] = sum(ACCIDENTALS[sign] for sign in signs)
        shift = self.accidentals.get(name, self.key.get(letter.upper(), 0))
        octave = letter.islower() + octaves.count("'") - octaves.count(",")
        midi_pitch = 60 + 12 * octave + SEMITONES[letter.upper()] + shift
        if not 21 <= midi_pitch <= 108:
            self.fail(f"{note[0]} is outside the range of a piano")
        return midi_pitch

    def begin_tuplet(self, count: int, in_time_of: str | None, note_count: str | None) -> None:
        compound = self.meter.numerator % 3 == 0 and self.meter.denominator == 8
        default_time = TUPLET_TIMES.get(count, 3 if compound else 2)
        if in_time_of == "0" or note_count == "0":
            self.fail(f"a tuplet ({count} of no notes")
        self.tuplet = (int(note_count or count), Fraction(int(in_time_of or default_time), count))

    def break_rhythm(self, sign: str) -> None:
        """Lengthen the last note and shorten the next for a>b, and the reverse for a<b."""
        if not self.last_indices:
            self.fail(f"{sign!r} does not follow a note")
        short_factor = Fraction(1, 2 ** len(sign))
        first_factor = 2 - short_factor if sign[0] == ">" else short_factor
        change = Fraction(0)
        for index in self.last_indices:
            note = self.notes[index]
            change = note.length * (first_factor - 1)
            self.notes[index] = note._replace(length=note.length * first_factor)
        self.time += change
        self.next_factor = 2 - first_factor

    def end_bar(self, sign: str) -> None:
        """End a bar, and check that its length fits the meter."""
        if self.tuplet[0]:
            self.fail("a tuplet has no end before the end of its bar")
        length, is_plain = self.time - self.bar_start, sign == "|"
        if length and self.meter:
            if length > self.meter:
                self.fail(f"{length} long, more than the meter, {self.meter}")
            if length < self.meter and is_plain and not self.may_be_short:
                location = f"line {self.line_number}, bar {self.bar_number}"
                self.short_bar_error = (
                    f"{location}: {length} long, less than the meter, {self.meter}"
                )
        if not is_plain:
            self.short_bar_error = ""
        if length:
            self.bar_number += 1
        if length or not is_plain:
            self.may_be_short = not is_plain
        self.bar_start, self.accidentals, self.next_factor = self.time, {}, Fraction(1)

    def finish(self) -> list[Note]:
        if self.in_header:
            self.fail("no K:; give the key")
        self.end_bar("|]")
        if not any(note.pitch is not None for note in self.notes):
            self.fail("the tune has no notes")
        return self.notes

    def fail(self, reason: str) -> Never:
        raise InputError(f"line {self.line_number}, bar {self.bar_number}: {reason}")
