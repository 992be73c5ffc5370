"""Names on stretches of text."""

import re

from regard.view.mark import HUES, hue, marked

PARTS = [("Ada Lovelace", "person"), ("met", ""), ("Bob", "person"), ("in", ""), ("Rome", "place")]


def test_in_colour():
    shown = marked(PARTS)
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == (
        " Ada Lovelace person  met  Bob person  in  Rome place "
    )
    colours = [int(one) for one in re.findall(r"48;5;(\d+)m", shown)]
    assert colours == [hue("person"), hue("person"), hue("place")]
    assert shown.count("\x1b[0m") == 3
    assert marked([]) == ""
    assert len({hue(f"name {n}") for n in range(100)}) == len(HUES)


def test_nothing_reaches_the_terminal_that_is_not_text():
    shown = marked([("a\x1b[2Jb", "x\x07"), ("\x9b1m", "")])
    assert "\x1b[2J" not in shown
    assert "\x07" not in shown
    assert "\x9b" not in shown
