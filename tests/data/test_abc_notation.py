"""Tests of the ABC parser: known notes, agreement with music21, and error messages."""

from fractions import Fraction

import pytest

from regard.data.formats.abc_notation import key_signature, parse_meter, parse_tune

JIG = """T:The jig
M:6/8
L:1/8
K:D
P:A
A|"D"def fed|"G"B>dB {c}A~FD|[1"A7"(3ABc d3/2e/2 fz:|[2"D"[DFA]3 [DFA]2|]
P:B
K:Am
A,|:c'2 b/a// a// g2|
M:2/4
L:1/4
_B ^c|!trill!=B2-|B2:|
"""


def pitches_and_lengths(body, head="M:4/4\nL:1/4\nK:C\n"):
    return [(n.pitch, n.length) for n in parse_tune(head + body)]


def error_message(tune):
    with pytest.raises(ValueError) as caught:
        parse_tune(tune)
    return str(caught.value)


def test_pitches():
    assert [p for p, _ in pitches_and_lengths("C,CCc|c'c'',cz")] == [
        48,
        60,
        60,
        72,
        84,
        84,
        72,
        None,
    ]
    assert [p for p, _ in pitches_and_lengths("^CC=C_C|C4|__B,", "M:none\nK:G\n")] == [
        61,
        61,
        60,
        59,
        60,
        57,
    ]
    assert [p for p, _ in pitches_and_lengths("FfcB", "K:D\n")] == [66, 78, 73, 71]
    assert [p for p, _ in pitches_and_lengths("[CEG]", "K:Cm\n")] == [60, 63, 67]


def test_lengths():
    assert [n for _, n in pitches_and_lengths("C2/C//C3/2C|", "M:none\nL:1/8\nK:C\n")] == [
        *(Fraction(1, 8), Fraction(1, 32), Fraction(3, 16), Fraction(1, 8))
    ]
    assert [n for _, n in pitches_and_lengths("A>B A<B|A>>B")] == [
        *(
            Fraction(3, 8),
            Fraction(1, 8),
            Fraction(1, 8),
            Fraction(3, 8),
            Fraction(7, 16),
            Fraction(1, 16),
        )
    ]
    assert [n for _, n in pitches_and_lengths("(3ABcA2|")] == [Fraction(1, 6)] * 3 + [
        Fraction(1, 2)
    ]
    assert [n for _, n in pitches_and_lengths("(3:2:2A2BA2|")] == [
        Fraction(1, 3),
        Fraction(1, 6),
        Fraction(1, 2),
    ]
    assert [n for _, n in pitches_and_lengths("A-A A2-|A")] == [
        Fraction(1, 2),
        Fraction(3, 4),
    ]  # ties prolong
    assert [n for _, n in pitches_and_lengths("[A2-c2-][Ac]B|")] == [
        Fraction(3, 4),
        Fraction(3, 4),
        Fraction(1, 4),
    ]
    assert [n for _, n in pitches_and_lengths("A", "M:2/4\nK:C\n")] == [Fraction(1, 16)]
    assert [n for _, n in pitches_and_lengths("A", "M:3/4\nK:C\n")] == [Fraction(1, 8)]
    starts = [n.start for n in parse_tune("M:3/4\nL:1/4\nK:C\nA[Bd]2|c")]
    assert starts == [0, Fraction(1, 4), Fraction(1, 4), Fraction(3, 4)]


def test_keys_and_meters():
    assert (
        key_signature("G")
        == key_signature("G major")
        == key_signature("Em")
        == key_signature("A dor")
        == {"F": 1}
    )
    assert key_signature("Bb") == key_signature("Gmin") == {"B": -1, "E": -1}
    assert key_signature("C") == key_signature("none") == {}
    assert len(key_signature("C#")) == 7
    assert parse_meter("C|") == parse_meter("4/4") == 1
    assert parse_meter("(3+2)/8") == Fraction(5, 8)
    assert parse_meter("none") == 0


def test_agrees_with_music21():
    music21 = pytest.importorskip("music21")
    music21_notes = music21.converter.parse(f"X:1\n{JIG}", format="abc").stripTies().flatten().notes
    expected = [
        (
            pitch.midi,
            Fraction(note.offset).limit_denominator(96),
            Fraction(note.quarterLength).limit_denominator(96),
        )
        for note in music21_notes
        if not isinstance(note, music21.harmony.ChordSymbol) and not note.duration.isGrace
        for pitch in note.pitches
    ]
    actual = [(n.pitch, n.start * 4, n.length * 4) for n in parse_tune(JIG) if n.pitch is not None]
    assert sorted(actual) == sorted(expected)
    assert len(actual) == 34


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ABcd|ABc|ABcd|", "line 4, bar 2: 3/4 long, less than the meter, 1"),
        ("ABcd|ABcde|", "line 4, bar 2: 5/4 long, more than the meter, 1"),
        ("A|ABcd|\nABc|ABcd|", "line 5, bar 3: 3/4 long, less than the meter, 1"),
        ("ABc?|", "line 4, bar 1: column 4: '?' is not allowed here"),
        ('"GABcd|', "line 4, bar 1: column 1: '\"' a name has no end"),
        ("[ABcd|", "line 4, bar 1: column 1: '[' a chord has no end"),
        ("[AhB]|", "line 4, bar 1: 'h' is not a note, in the chord [AhB]"),
        ("[A]B{c d|", "line 4, bar 1: column 5: '{' a grace note has no end"),
        ("(3AB|cd|", "line 4, bar 1: a tuplet has no end before the end of its bar"),
        (">AB|", "line 4, bar 1: '>' does not follow a note"),
        ("A0|", "line 4, bar 1: 0 is not a length"),
        ("A/0|", "line 4, bar 1: /0 is not a length"),
        ("c''''|", "line 4, bar 1: c'''' is outside the range of a piano"),
        ("z4|", "line 4, bar 2: the tune has no notes"),
        ("V:1\nABcd|", "line 4, bar 1: V: several voices are not supported"),
        ("[M:x]ABcd|", "line 4, bar 1: M:x is not a meter like 6/8"),
    ],
)
def test_unplayable_bodies(body, message):
    assert error_message(f"M:4/4\nL:1/4\nK:C\n{body}") == message


def test_unplayable_headers():
    assert error_message("M:4/4\nABcd|") == "line 2, bar 1: notes before the key; add K:"
    assert error_message("M:4/4") == "line 1, bar 1: no K:; give the key"
    assert error_message("K:H\nA|") == "line 1, bar 1: K:H is not a key"
    assert (
        error_message("K:G#lyd\nA|")
        == "line 1, bar 1: K:G#lyd is not a key: it would have 9 accidentals"
    )
    assert error_message("L:2\nK:C\nA|") == "line 1, bar 1: L:2 is not a length like 1/8"


@pytest.mark.parametrize(
    "body",
    [
        "A|ABcd|ABc|",  # short at both ends
        "A|:ABcd|ABc:|A|ABcd|ABc||A|ABcd|",  # next to repeats and double bars
        "A|ABcd|[1ABc:|[2ABc|]",  # endings
        "ABcd|ABc|\nP:B\nA|ABcd|",  # parts
        "ABcd|\\\n ABcd|",
        "(ABc)d|.A ~B vc ud|HAB`cd|",
    ],
)
def test_playable_bodies(body):
    assert parse_tune(f"M:4/4\nL:1/4\nK:C\n{body}")
