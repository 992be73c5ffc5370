"""A picture of notes."""

from fractions import Fraction

import pytest

from regard.view.piano_roll import piano_roll_png, pitch_name


def test_names():
    assert [pitch_name(pitch) for pitch in (21, 60, 61, 69, 108)] == ["A0", "C4", "C#4", "A4", "C8"]


def test_notes_are_where_they_belong():
    image = pytest.importorskip("matplotlib.image")
    from io import BytesIO

    def dark(notes):
        pixels = image.imread(BytesIO(piano_roll_png(notes, "a $title"))).mean(-1)
        return pixels.shape, pixels

    shape, low = dark([(60, Fraction(0), Fraction(4)), (72, Fraction(8), Fraction(4))])
    same, high = dark([(72, Fraction(0), Fraction(4)), (60, Fraction(8), Fraction(4))])
    assert shape == same
    rows = slice(0, shape[0] // 2)  # above
    left, right = slice(0, shape[1] // 2), slice(shape[1] // 2, None)
    assert low[rows, right].sum() < high[rows, right].sum()
    assert high[rows, left].sum() < low[rows, left].sum()


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="there is nothing to draw"):
        piano_roll_png([], "a")
