"""Names on stretches of text."""

import re

from regard.view.highlight import HIGHLIGHT_COLORS, highlight_color, render_highlighted

PARTS = [("Ada Lovelace", "person"), ("met", ""), ("Bob", "person"), ("in", ""), ("Rome", "place")]


def test_in_colour():
    shown = render_highlighted(PARTS)
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == (
        " Ada Lovelace person  met  Bob person  in  Rome place "
    )
    colours = [int(one) for one in re.findall(r"48;5;(\d+)m", shown)]
    assert colours == [
        highlight_color("person"),
        highlight_color("person"),
        highlight_color("place"),
    ]
    assert shown.count("\x1b[0m") == 3
    assert render_highlighted([]) == ""
    assert len({highlight_color(f"name {n}") for n in range(100)}) == len(HIGHLIGHT_COLORS)


def test_nothing_reaches_the_terminal_that_is_not_text():
    shown = render_highlighted([("a\x1b[2Jb", "x\x07"), ("\x9b1m", "")])
    assert "\x1b[2J" not in shown
    assert "\x07" not in shown
    assert "\x9b" not in shown
