"""Curves: the text picture by hand, the files whole, and errors in one line."""

import errno
import math
import re
import xml.etree.ElementTree as ET

import pytest

from regard.view import curve
from regard.view.curve import ChartLabels, render_log_chart, save_log_chart
from regard.view.terminal import Surface

WORDS = ChartLabels("title", "steps", "norm")
FALLING = {"falls": [1.0, 1e-2, 1e-4], "holds": [1.0, 1.0, 1.0]}
X = [0, 1, 2]


def rows(text: str) -> dict[str, str]:
    """The marks of each row that has a number on the axis."""
    found = re.findall(r"^ *([\w-]+)[|│](.*)$", text, re.MULTILINE)
    return dict(found)


def test_by_hand():
    text = render_log_chart(FALLING, X, WORDS, Surface(27, "ascii"))
    lines = text.splitlines()
    assert lines[0] == "title"
    assert lines[1] == "norm   o falls   x holds"
    marks = rows(text)
    assert list(marks) == ["1", "1e-1", "1e-2", "1e-3", "1e-4"]
    assert marks["1"] == "x" * 20
    assert marks["1e-4"].index("o") == 19
    assert 9 in [i for i, mark in enumerate(marks["1e-2"]) if mark == "o"]
    assert lines[-2] == "      +" + "-" * 20
    assert re.fullmatch(r" {7}0 +steps +2", lines[-1])
    assert len(lines[-1]) == 27


def test_what_has_no_logarithm_leaves_a_gap():
    for nothing in (0.0, -1.0, math.nan, math.inf):
        text = render_log_chart(
            {"a": [1.0, 1.0, nothing, 1.0, 1.0]}, range(5), WORDS, Surface(28, "ascii")
        )
        line = rows(text)["1"]
        assert line.startswith("oooooo")
        assert line.endswith("oooooo")
        assert line[9:12] == "   "


def test_it_fits_the_terminal():
    for width in (40, 80, 100, 200):
        lines = render_log_chart(FALLING, X, WORDS, Surface(width, "shades")).splitlines()
        assert max(map(len, lines)) == min(width, 100)


def test_colours_go_around_the_same_marks():
    plain = render_log_chart(FALLING, X, WORDS, Surface(60, "shades"))
    for ink in ("256", "truecolor"):
        colored = render_log_chart(FALLING, X, WORDS, Surface(60, ink))
        assert "\x1b[38;" in colored
        assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
    assert render_log_chart(FALLING, X, WORDS, Surface(60, "ascii")).isascii()


def test_one_value_and_wide_ranges_have_an_axis():
    assert set(rows(render_log_chart({"a": [1.0, 1.0]}, [0, 1], WORDS))) == {"1e1", "1"}
    marks = rows(render_log_chart({"a": [1e-300, 1e300]}, [0, 1], WORDS))
    assert 4 <= len(marks) <= 7
    assert {"1e300", "1e-300"} <= set(marks)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml")])
def test_files_are_pictures_and_always_the_same(tmp_path, suffix, start):
    for name in ("one", "two"):
        save_log_chart(tmp_path / f"{name}.{suffix}", FALLING, X, WORDS)
    one, two = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
    assert one.startswith(start)
    assert one == two
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"one.{suffix}", f"two.{suffix}"]


def test_svg_has_a_line_for_each_curve_in_its_own_colour(tmp_path):
    path = tmp_path / "curve.svg"
    save_log_chart(
        path, {"a": [1, 0, 2], "b": [3, math.inf, 1]}, X, WORDS
    )  # a gap does not disturb it
    ET.parse(path)  # noqa: S314 (our own file)
    text = path.read_text().lower()
    assert all(colour.lower() in text for colour in curve.COLORS[:2])
    assert curve.COLORS[2].lower() not in text


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "curve.png"
    path.write_bytes(b"before")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("regard.files.os.fsync", full)
        with pytest.raises(OSError, match="no space left"):
            save_log_chart(path, FALLING, X, WORDS)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    save_log_chart(path, FALLING, X, WORDS)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(curve, "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'regard\[plot\]'") as error:
        save_log_chart(tmp_path / "curve.png", FALLING, X, WORDS)
    assert error.value.name == "matplotlib"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("curve.pdf: a plot must end in .png or .svg", "curve.pdf"),
        ("curve: a plot must end in .png or .svg", "curve"),
        ("there is no folder", "nowhere/curve.png"),
        ("is a folder; name a file", "folder.png"),
    ],
)
def test_bad_paths(tmp_path, words, name):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        save_log_chart(tmp_path / name, FALLING, X, WORDS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "lines", "x"),
    [
        ("lines['a'] has 2 values, but x has 3", {"a": [1, 2]}, X),
        ("lines must have 1 to 6 entries, not 0", {}, X),
        ("lines must have 1 to 6 entries, not 7", {str(n): [1, 2, 3] for n in range(7)}, X),
        ("lines must have a positive finite value", {"a": [0, -1, math.nan]}, X),
        ("x must have at least two numbers", {"a": [1]}, [0]),
        ("x must have at least two numbers", {"a": [1, 2, 3]}, [0, 2, 1]),
    ],
)
def test_bad_lines(tmp_path, words, lines, x):
    for make in (
        lambda: render_log_chart(lines, x, WORDS),
        lambda: save_log_chart(tmp_path / "c.png", lines, x, WORDS),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            make()
    assert not list(tmp_path.iterdir())
