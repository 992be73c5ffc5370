"""Small maps side by side: as many as fit, each cell as strong as its weight."""

import pytest

from regard.view.grid import render_grids, render_thumbnail
from regard.view.terminal import Surface

PLAIN = Surface(40, "ascii")


def test_maps_lie_side_by_side():
    one, other = [[0.0, 0.5], [1.0, 0.2]], [[0.1, 0.1], [0.1, 0.4]]
    assert render_grids({"a": one, "b": other}, PLAIN).splitlines() == [
        "a     b",
        ". 5   1 1",
        "X 2   1 4",
    ]
    scaled = render_grids({"b": other}, PLAIN, max_weight=0.4).splitlines()
    assert scaled == ["b", "3 3", "3 X"]


def test_what_does_not_fit_goes_below():
    maps = {f"map {n}": [[n / 5] * 4] for n in range(5)}
    found = render_grids(maps, Surface(28, "ascii"), max_weight=1.0)
    assert found.splitlines() == [
        "map 0     map 1     map 2",
        ". . . .   2 2 2 2   4 4 4 4",
        "",
        "map 3     map 4",
        "6 6 6 6   8 8 8 8",
    ]
    wide = render_grids({"a": [[0.1] * 30]}, Surface(20, "ascii"))
    assert wide.splitlines()[1] == "X" * 30  # never cut: a narrow cell each


def test_nothing_is_drawn_of_nothing():
    assert render_grids({"a": [[0.0, 0.0]]}, PLAIN).splitlines()[1] == ". ."
    with pytest.raises(ValueError, match="maps is empty; give at least one"):
        render_grids({}, PLAIN)


def test_a_title_cannot_disturb():
    assert "\x1b" not in render_grids({"\x1b[2Jx": [[0.5]]}, PLAIN)


def test_a_picture_in_each_ink():
    colours = [[(0.0, 0.0, 0.0), (255.0, 255.0, 255.0)]]
    assert render_thumbnail(colours, Surface(80, "ascii")) == ". X "
    assert render_thumbnail(colours, Surface(80, "shades")) == "  ██"
    assert "48;2;255;255;255m" in render_thumbnail(colours, Surface(80, "truecolor"))
    assert "48;5;231m" in render_thumbnail(colours, Surface(80, "256"))
