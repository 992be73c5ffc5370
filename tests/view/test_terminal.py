"""Attention maps in the terminal, against pictures that can be checked by eye."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from regard.view.terminal import (
    LEFT_TO_RIGHT,
    MAX_COLUMN_LABEL_CELLS,
    Surface,
    label,
    render_heatmap,
    render_legend,
    render_on_color,
)

WEIGHTS = [[0.9, 0.1, 0.0], [0.04, 0.26, 0.7]]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def picture(text: str) -> str:
    """A picture in the source of a test: without its first line break and its indentation."""
    return "\n".join(line[8:] for line in text.strip("\n").splitlines())


def test_shades():
    assert render_heatmap(WEIGHTS, ["le", "chat"], ["the", "cat", "sat"]) == picture(
        """
             the cat sat
        le   ████░░░░
        chat     ▒▒▒▒▓▓▓▓
        """.rstrip(" ")
    )


def test_ascii_digits():
    drawn = render_heatmap(WEIGHTS, ["le", "chat"], ["the", "cat", "sat"], Surface(80, "ascii"))
    assert drawn == picture(
        """
             the cat sat
        le   9   1   .
        chat .   3   7
        """.rstrip(" ")
    )
    assert drawn.isascii()


def test_full_and_half_and_nothing():
    assert render_heatmap(
        [[0.0, 0.05, 0.5, 0.95, 1.0]], ["q"], list("abcde"), Surface(80, "ascii")
    ) == ("  a b c d e\nq . 1 5 X X")


def test_truecolor_runs_from_the_first_to_the_last_colour_of_the_ramp():
    head, row = render_heatmap([[0.0, 1.0]], ["q"], ["a", "b"], Surface(80, "truecolor")).split(
        "\n"
    )
    assert head == "  a b"
    assert row == "q \x1b[48;2;68;1;84m  \x1b[0m\x1b[48;2;253;231;37m  \x1b[0m"


def test_256_colours_are_of_the_cube():
    row = render_heatmap([[0.0, 1.0]], ["q"], ["a", "b"], Surface(80, "256")).split("\n")[1]
    # (68, 1, 84) is near (51, 0, 102): 16 + 36*1 + 0 + 2; (253, 231, 37) near (255, 255, 51).
    assert row == "q \x1b[48;5;54m  \x1b[0m\x1b[48;5;227m  \x1b[0m"


def test_sixteen_colours_have_a_step_for_each_quarter():
    row = render_heatmap(
        [[0.04, 0.2, 0.4, 0.6, 1.0]], ["q"], list("abcde"), Surface(80, "16")
    ).split("\n")[1]
    assert row == "q " + "".join(f"\x1b[{code}m  \x1b[0m" for code in (40, 44, 46, 102, 103))


def test_letters_can_be_read_on_sixteen_colours():
    white, black = (render_on_color("a", level, "16") for level in (0.2, 0.3))
    assert (white, black) == ("\x1b[44;97ma\x1b[0m", "\x1b[46;30ma\x1b[0m")


def test_top_is_drawn_in_full_and_more_is_cut():
    assert render_heatmap(
        [[0.01, 0.02, 0.5]], ["q"], list("abc"), Surface(80, "ascii"), max_weight=0.02
    ) == ("  a b c\nq 5 X X")


def test_nan_and_negative_are_visible_or_nothing():
    assert (
        render_heatmap([[float("nan"), -1.0]], ["q"], ["a", "b"], Surface(80, "ascii"))
        == "  a b\nq ? ."
    )


def test_columns_that_do_not_fit_go_below():
    drawn = render_heatmap([[0.1 * i for i in range(5)]], ["q"], list("abcde"), Surface(7, "ascii"))
    assert drawn == "  a b\nq . 1\n\n  c d\nq 2 3\n\n  e\nq 4"


def test_wide_characters_keep_the_columns_aligned():
    drawn = render_heatmap(
        [[1.0, 0.0], [0.0, 1.0]], ["猫", "é"], ["机器", "x"], Surface(80, "ascii")
    )
    assert drawn.split("\n") == ["   ???? x", "?? X    .", "?  .    X"]
    head, first, second = render_heatmap(
        [[1.0, 0.0], [0.0, 1.0]], ["猫", "e\u0301"], ["机器", "x"]
    ).split("\n")
    assert head == "   机器 x"
    assert first == "猫 █████"
    assert second == "e\u0301       █████"
    assert cell_len(second) == cell_len("   机器 x    ")


def test_neighbours_that_are_read_from_the_right_keep_their_columns():
    head = render_heatmap([[1.0, 0.0]], ["שלום"], ["مرحبا", "hi"]).split("\n")[0]
    assert head == f"     مرحبا{LEFT_TO_RIGHT} hi"
    assert cell_len(head) == 5 + 6 + 2


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1bcx", "x"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("a\x00\x07\x7fb", "ab"),
        ("\u202eabc\u2066", "abc"),
        ("a\u2028b", "ab"),
        (" ", "␣"),
        ("\u0301", "◌\u0301"),
        ("❤\ufe0f", "❤"),
        ("", ""),
    ],
)
def test_labels_cannot_disturb_the_terminal(token: str, shown: str):
    assert label(token, 20) == shown


def test_labels_are_cut_by_cells_and_never_between_a_letter_and_its_mark():
    assert label("abcdefgh", 5) == "abcd…"
    assert label("abcdefgh", 5, "ascii") == "abcd~"
    assert label("机器翻译", 6) == "机器…"
    assert label("e\u0301" * 6, 4) == "e\u0301" * 3 + "…"


@given(
    st.lists(st.text(max_size=12), min_size=1, max_size=12),
    st.lists(st.text(max_size=12), min_size=1, max_size=4),
    st.sampled_from(["ascii", "shades", "16", "256", "truecolor"]),
    st.integers(30, 60),
)
def test_any_token_keeps_lines_within_the_width(columns, rows, ink, width):
    weights = [[1.0] * len(columns)] * len(rows)
    drawn = render_heatmap(weights, rows, columns, Surface(width, ink))
    lines = COLOUR.sub("", drawn).replace(LEFT_TO_RIGHT, "").split("\n")
    assert all(cell_len(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)
    blocks = drawn.count("\n\n") + 1
    assert len(lines) == blocks * (len(rows) + 1) + blocks - 1


def test_column_labels_have_a_limit():
    head = render_heatmap([[1.0]], ["q"], ["x" * 50]).split("\n")[0]
    assert head == "  " + "x" * (MAX_COLUMN_LABEL_CELLS - 1) + "…"


@pytest.mark.parametrize(
    ("weights", "rows", "columns", "message"),
    [
        ([[1.0]], ["a", "b"], ["c"], r"weights has 1 rows, but rows has 2 labels"),
        ([[1.0], [1.0, 0.0]], ["a", "b"], ["c"], r"weights\[1\] has 2 columns, but columns has 1"),
    ],
)
def test_shapes_that_differ_are_refused(weights, rows, columns, message):
    with pytest.raises(ValueError, match=message):
        render_heatmap(weights, rows, columns)


def test_top_must_be_positive():
    with pytest.raises(ValueError, match="max_weight must be positive, not 0"):
        render_heatmap([[1.0]], ["a"], ["b"], max_weight=0.0)


def test_scale():
    assert render_legend() == "0   ░░▒▒▓▓██ 1"
    assert render_legend(Surface(80, "ascii"), max_weight=0.5) == "0 . 1 2 3 4 5 6 7 8 9 X 0.5"
    assert COLOUR.sub("", render_legend(Surface(80, "truecolor"))) == "0 " + " " * 18 + " 1"


class Stream(io.StringIO):
    def __init__(self, encoding: str = "utf-8", terminal: bool = True):
        super().__init__()
        self._encoding, self._terminal = encoding, terminal

    @property
    def encoding(self) -> str:
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("stream", "settings", "ink"),
    [
        (Stream(), {"TERM": "xterm-256color"}, "256"),
        (Stream(), {"TERM": "xterm", "COLORTERM": "truecolor"}, "truecolor"),
        (Stream(), {"TERM": "xterm"}, "16"),
        (Stream(), {"TERM": "linux"}, "16"),
        (Stream(), {"TERM": "xterm-256color", "NO_COLOR": "1"}, "shades"),
        (Stream(), {"TERM": "dumb"}, "shades"),
        (Stream(terminal=False), {"TERM": "xterm-256color"}, "shades"),
        (Stream(encoding="ascii"), {"TERM": "xterm-256color"}, "ascii"),
    ],
)
def test_the_surface_of_a_stream(stream, settings, ink, monkeypatch):
    for name in ("NO_COLOR", "COLORTERM", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**settings, "COLUMNS": "44", "LINES": "20"}.items():
        monkeypatch.setenv(name, value)
    assert Surface.from_console(Console(file=stream)) == Surface(44, ink)
