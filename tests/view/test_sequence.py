"""Residues with their states under them."""

import re

import pytest

from regard.view.sequence import render_annotated_sequence
from regard.view.terminal import Surface

PLAIN = re.compile(r"\x1b\[[0-9;]*m")


def test_lines_are_as_wide_as_the_surface():
    shown = render_annotated_sequence("A" * 25, "H" * 12 + "C" * 13, Surface(width=17))
    assert shown.split("\n\n") == [
        "1     " + "A" * 10 + "\n      " + "H" * 10,
        "11    " + "A" * 10 + "\n      HHCCCCCCCC",
        "21    " + "A" * 5 + "\n      " + "C" * 5,
    ]


def test_states_have_colours_where_there_are_any():
    shown = render_annotated_sequence("MKVLAG", "CHHEGG", Surface(ink="256", width=40))
    assert PLAIN.sub("", shown) == "1     MKVLAG\n      CHHEGG"
    assert "\x1b[30;48;5;209mHH\x1b[0m" in shown
    assert "\x1b[30;48;5;75mE\x1b[0m" in shown
    assert shown.count("\x1b[30;") == 3  # not that of coil


def test_both_lines_are_of_one_length():
    with pytest.raises(ValueError, match="one symbol per letter: 3 for 2"):
        render_annotated_sequence("MK", "CCC")
