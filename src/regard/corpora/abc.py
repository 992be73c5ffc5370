"""ABC notation (version 2.1, one voice): the notes of a tune, or why it cannot be played.

`played` raises a ValueError that says where (line and bar) and why: a sign that is none, something
that is opened and not closed, a bar that does not fit the metre. A bar may be short at the
beginning and the end of a tune or part, and beside repeats, endings and double bars; never long.
"""

import re
from fractions import Fraction
from typing import NamedTuple, Never

FIELD = re.compile(r"([A-Za-z+]):\s*(.*?)\s*$")
LENGTH = r"(\d*)(/*)(\d*)"
NOTE = re.compile(r"([_^=]{0,2})([A-Ga-g])([,']*)" + LENGTH)
REST = re.compile("[zx]" + LENGTH)
BAR = re.compile(r"\[\|:?|:*\|[\]:|]*|::")
ENDING = re.compile(r"\[[1-9][0-9,.-]*|(?<=[|:])[1-9][0-9,.-]*")
TUPLET = re.compile(r"\(([2-9])(?::(\d*))?(?::(\d*))?")
CHORD = re.compile(r"\[([^\]\[|:\n]+)\]" + LENGTH)
ASIDE = re.compile(  # a chord's name, an ornament, grace notes, a slur, space
    r"\"[^\"\n]*\"|![^!\n]*!|\{[^}\n]*\}"
    r"|[~.uvHLMOPST](?=[\"~.{_^=A-Ga-gzx\[])|\((?!\d)|\)|[\s`]+|\\$"
)
INLINE = re.compile(r"\[([A-Za-z]):\s*([^\]\n]*?)\s*\]")
TIE = re.compile("-")
BROKEN = re.compile(r">{1,3}|<{1,3}")

SHARPS = "FCGDAEB"
TONICS = {name: n for n, name in enumerate(("Cb", "Gb", "Db", "Ab", "Eb", "Bb", "F"), -7)}
TONICS |= {name: n for n, name in enumerate(("C", "G", "D", "A", "E", "B", "F#", "C#"))}
TONICS |= {"G#": 8, "D#": 9, "A#": 10}
MODES = {"": 0, "maj": 0, "ion": 0, "m": -3, "min": -3, "aeo": -3}
MODES |= {"mix": -1, "dor": -2, "phr": -4, "lyd": 1, "loc": -5}
KEY = re.compile(r"([A-G][#b]?)\s*([A-Za-z]*)")
SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
BENT = {"^": 1, "_": -1, "=": 0}
TIMES = {2: 3, 3: 2, 4: 3, 6: 2, 8: 3}  # so many notes in the time of so many; else by the metre
FREE = Fraction(0)


class Note(NamedTuple):
    """`start` and `length` in whole notes; `pitch` as of MIDI, None for a rest."""

    pitch: int | None
    start: Fraction
    length: Fraction


def played(tune: str) -> list[Note]:
    """All notes in their order, repeats not played again; chords as notes of one start."""
    reader = Reader()
    lines = tune.split("\n")
    for number, line in enumerate(lines, 1):
        reader.number = number
        reader.line(line)
    reader.number = len(lines)
    return reader.end()


def key_of(text: str) -> dict[str, int]:
    """What a key bends: "G" gives {"F": 1}."""
    found = KEY.match(text)
    mode = MODES.get(found[2].lower()[:3]) if found else None
    if found is None or mode is None or found[1] not in TONICS:
        if text.lower().startswith(("none", "hp")) or not text:
            return {}
        raise ValueError(f"K:{text} is no key")
    sharps = TONICS[found[1]] + mode
    if not -7 <= sharps <= 7:
        raise ValueError(f"K:{text} is no key: it would have {abs(sharps)} signs")
    names = SHARPS[:sharps] if sharps >= 0 else SHARPS[::-1][:-sharps]
    return dict.fromkeys(names, 1 if sharps > 0 else -1)


def metre_of(text: str) -> Fraction:
    """The length of a bar; 0: free."""
    if text in ("C", "C|"):
        return Fraction(1)
    if text.lower() == "none":
        return FREE
    found = re.fullmatch(r"\(?(\d+(?:\+\d+)*)\)?/([1-9]\d*)", text)
    if found is None or not sum(map(int, found[1].split("+"))):
        raise ValueError(f"M:{text} is no metre, as 6/8 is")
    return Fraction(sum(map(int, found[1].split("+"))), int(found[2]))


def times(count: str, slashes: str, by: str) -> Fraction:
    """The factor behind a note: 2, /2, 3/2, /, //."""
    if int(count or 1) == 0 or by == "0" or (by and not slashes):
        raise ValueError(f"{count}{slashes}{by} is no length")
    under = int(by) if by else 2 ** len(slashes)
    return Fraction(int(count or 1), under)


class Reader:
    """Where a tune stands while it is read."""

    def __init__(self) -> None:
        self.number, self.bar = 1, 1
        self.header, self.key, self.bent = True, dict[str, int](), dict[str, int]()
        self.metre, self.unit = FREE, Fraction(0)
        self.notes, self.time, self.began = list[Note](), Fraction(0), Fraction(0)
        self.loose = True  # this bar may be short: it begins a part
        self.short = ""  # what is wrong with the bar before, if music follows
        self.tuplet: tuple[int, Fraction] = (0, Fraction(1))  # notes to come, and their factor
        self.swing = Fraction(1)  # of the next note, after > or <
        self.last: list[int] = []  # the notes that sounded last, by their places
        self.tied = False

    def line(self, text: str) -> None:
        text = text.split("%", 1)[0].rstrip()
        field = FIELD.fullmatch(text)
        if field is not None and not text.startswith(("|:", "::")):
            self.field(field[1], field[2])
        elif text:
            if self.header:
                self.fail("notes before the key: there is no K:")
            self.music(text)

    def field(self, name: str, value: str) -> None:
        try:
            match name:
                case "K":
                    self.key, self.header, self.bent = key_of(value), False, {}
                case "M":
                    self.metre = metre_of(value)
                case "L":
                    found = re.fullmatch(r"1/([1-9]\d*)", value)
                    if found is None:
                        raise ValueError(f"L:{value} is no length, as 1/8 is")
                    self.unit = Fraction(1, int(found[1]))
                case "V":
                    raise ValueError("V: several voices cannot be read")
        except ValueError as error:
            self.fail(str(error))
        if name in "KMP":  # a part may end, and begin, with a short bar
            self.loose, self.short = True, ""
            if name == "P" and not self.header:
                self.line_of_bar("||")

    def music(self, text: str) -> None:
        at = 0
        while at < len(text):
            at = self.token(text, at)

    def token(self, text: str, at: int) -> int:
        """Read one; where the next begins."""
        if found := INLINE.match(text, at):
            self.field(found[1], found[2])
        elif found := ENDING.match(text, at):
            self.line_of_bar("[1")
        elif found := BAR.match(text, at):
            self.line_of_bar(found[0])
        elif found := TUPLET.match(text, at):
            self.begin_tuplet(int(found[1]), found[2], found[3])
        elif found := ASIDE.match(text, at):
            pass
        elif found := BROKEN.match(text, at):
            self.break_rhythm(found[0])
        elif self.last and (found := TIE.match(text, at)):
            self.tied = True
        elif found := CHORD.match(text, at):
            self.chord(found[1], *found.group(2, 3, 4))
        elif found := NOTE.match(text, at):
            self.sound([found], self.length(*found.group(4, 5, 6)))
        elif found := REST.match(text, at):
            self.sound([], self.length(*found.group(1, 2, 3)))
        else:
            opened = {'"': "a name", "!": "an ornament", "{": "a grace note", "[": "a chord"}
            what = f"{opened[text[at]]} has no end" if text[at] in opened else "is no sign here"
            self.fail(f"column {at + 1}: {text[at]!r} {what}")
        return found.end()

    def chord(self, inside: str, *length: str) -> None:
        """The first note's length times its own."""
        found, at = list[re.Match[str]](), 0
        while at < len(inside):
            note = NOTE.match(inside, at) or ASIDE.match(inside, at) or TIE.match(inside, at)
            if note is None:
                self.fail(f"{inside[at]!r} is no note, in the chord [{inside}]")
            if note.re is NOTE:
                found.append(note)
            at = note.end()
        if not found:
            self.fail(f"no note in the chord [{inside}]")
        self.sound(found, self.length(*found[0].group(4, 5, 6)) * self.length(*length) / self.own)
        self.tied = "-" in inside

    @property
    def own(self) -> Fraction:
        """The length of a note that says none."""
        if self.unit:
            return self.unit
        return Fraction(1, 16) if 0 < self.metre < Fraction(3, 4) else Fraction(1, 8)

    def length(self, count: str, slashes: str, by: str) -> Fraction:
        try:
            return times(count, slashes, by) * self.own
        except ValueError as error:
            self.fail(str(error))

    def sound(self, notes: list[re.Match[str]], length: Fraction) -> None:
        """Notes together, or a rest; those that are tied go on."""
        if self.short:
            raise ValueError(self.short)
        left, factor = self.tuplet
        length *= factor * self.swing
        self.swing = Fraction(1)
        if left:
            self.tuplet = (left - 1, factor if left > 1 else Fraction(1))
        held = {self.notes[place].pitch: place for place in self.last} if self.tied else {}
        self.tied, self.last = False, []
        for pitch in [self.pitch(note) for note in notes] or [None]:
            if pitch is not None and pitch in held:
                place = held[pitch]
                self.notes[place] = self.notes[place]._replace(
                    length=self.notes[place].length + length
                )
            else:
                place = len(self.notes)
                self.notes.append(Note(pitch, self.time, length))
            self.last.append(place)
        self.time += length

    def pitch(self, note: re.Match[str]) -> int:
        bends, letter, octaves = note.group(1, 2, 3)
        name = letter + octaves
        if bends:
            self.bent[name] = sum(BENT[one] for one in bends)
        bend = self.bent.get(name, self.key.get(letter.upper(), 0))
        octave = letter.islower() + octaves.count("'") - octaves.count(",")
        found = 60 + 12 * octave + SEMITONES[letter.upper()] + bend
        if not 21 <= found <= 108:
            self.fail(f"{note[0]} is no key of the piano")
        return found

    def begin_tuplet(self, count: int, into: str | None, over: str | None) -> None:
        compound = self.metre.numerator % 3 == 0 and self.metre.denominator == 8
        usual = TIMES.get(count, 3 if compound else 2)
        if into == "0" or over == "0":
            self.fail(f"({count} of no notes")
        self.tuplet = (int(over or count), Fraction(int(into or usual), count))

    def break_rhythm(self, sign: str) -> None:
        """a>b: the first is longer, the second shorter."""
        if not self.last:
            self.fail(f"{sign!r} after no note")
        small = Fraction(1, 2 ** len(sign))
        first = 2 - small if sign[0] == ">" else small
        change = Fraction(0)
        for place in self.last:
            note = self.notes[place]
            change = note.length * (first - 1)
            self.notes[place] = note._replace(length=note.length * first)
        self.time += change
        self.swing = 2 - first

    def line_of_bar(self, sign: str) -> None:
        """A bar ends here, and was as long as the metre says."""
        if self.tuplet[0]:
            self.fail("a tuplet has no end before the end of its bar")
        length, plain = self.time - self.began, sign == "|"
        if length and self.metre:
            if length > self.metre:
                self.fail(f"{length} long, more than the metre, {self.metre}")
            if length < self.metre and plain and not self.loose:
                where = f"line {self.number}, bar {self.bar}"
                self.short = f"{where}: {length} long, less than the metre, {self.metre}"
        if not plain:
            self.short = ""
        if length:
            self.bar += 1
        if length or not plain:
            self.loose = not plain
        self.began, self.bent, self.swing = self.time, {}, Fraction(1)

    def end(self) -> list[Note]:
        if self.header:
            self.fail("there is no K:")
        self.line_of_bar("|]")
        if not any(note.pitch is not None for note in self.notes):
            self.fail("no note in it")
        return self.notes

    def fail(self, why: str) -> Never:
        raise ValueError(f"line {self.number}, bar {self.bar}: {why}")
