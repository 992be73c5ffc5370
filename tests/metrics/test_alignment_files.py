"""Tests of alignment files: both formats, and error messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics.alignment_files import (
    GoldAlignment,
    read_gold,
    read_links,
    to_pharaoh,
    write_links,
)

links = st.frozensets(st.tuples(st.integers(0, 99), st.integers(0, 99)))


@given(st.lists(links), st.integers(0, 1))
def test_write_and_read(tmp_path_factory, alignments, base):
    path = tmp_path_factory.mktemp("links") / "out.align"
    write_links(path, alignments, base)
    assert read_links(path, base) == alignments
    assert [gold.sure for gold in read_gold(path, base)] == alignments


def test_pharaoh():
    assert to_pharaoh([(2, 1), (0, 0), (10, 3)]) == "0-0 2-1 10-3"
    assert to_pharaoh([(2, 1)], base=1) == "3-2"
    assert to_pharaoh([]) == ""


def test_unusual_lines(tmp_path):
    """Empty lines are sentences without links; CRLF and repeated links are accepted."""
    path = tmp_path / "out.align"
    path.write_bytes(b"0-0 1-2\r\n\n  3-1\t3-1 \n")
    assert read_links(path) == [{(0, 0), (1, 2)}, frozenset(), {(3, 1)}]


def test_gold_with_possible_links(tmp_path):
    """The English-French files of WPT count from 1 and mark possible links by `p`."""
    path = tmp_path / "enfr.gold"
    path.write_text("2-2 1-1 3p1\n\n1p1 1?2\n")
    assert read_gold(path, base=1) == [
        GoldAlignment(frozenset({(1, 1), (0, 0)}), frozenset({(1, 1), (0, 0), (2, 0)})),
        GoldAlignment(frozenset(), frozenset()),
        GoldAlignment(frozenset(), frozenset({(0, 0), (0, 1)})),
    ]


def test_gold_with_a_line_for_each_link(tmp_path):
    path = tmp_path / "gold.wa"
    path.write_text("0001 0 0 S\n1 1 2 P \n3 5 4\n1 1 2 S 0.5\n\n3 5 5 P 1\n")
    first, second, third = read_gold(path)
    assert first == GoldAlignment(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2)}))
    assert second == GoldAlignment(frozenset(), frozenset())
    assert third == GoldAlignment(frozenset({(5, 4)}), frozenset({(5, 4), (5, 5)}))
    assert len(read_gold(path, sentences=5)) == 5


def test_an_empty_file_has_no_sentences(tmp_path):
    path = tmp_path / "none"
    path.write_text("")
    assert read_links(path) == read_gold(path) == []


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        (b"0-0\n0-0 1:2\n", 0, ":2: expected links like 0-0 2-1, not '1:2'"),
        (b"0-0\n\n-1-0\n", 0, ":3: expected links like 0-0 2-1, not '-1-0'"),
        (b"0-\n", 0, ":1: expected links"),
        (b"1-1\n1-0\n", 1, ":2: no word 0, as words are counted from 1"),
        (b"0-0\n\xff-0\n", 0, ":2: not UTF-8"),
        (b"0-0 1p1\n", 0, ":1: possible links are for gold"),
    ],
)
def test_bad_lines(tmp_path, text, base, message):
    path = tmp_path / "bad.align"
    path.write_bytes(text)
    with pytest.raises(ValueError) as error:
        read_links(path, base)
    assert str(error.value).startswith(f"{path}{message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "base", "sentences", "message"),
    [
        ("1 0 0 S\n1 0 S\n", 0, None, ":2: expected 'sentence i j S', not '1 0 S'"),
        ("1 0 0 S\n0-0\n", 0, None, ":2: expected 'sentence i j S'"),
        ("0 0 0 S\n", 0, None, ":1: no sentence 0; sentences are counted from 1"),
        ("1 0 0 S\n4 0 0 S\n", 0, 3, ":2: no sentence 4; sentences are 1 to 3"),
        ("1 1 0 S\n", 1, None, ":1: no word 0"),
        ("0-0\n1 0 0 S\n", 0, None, ":2: expected links"),
        ("0-0\n0-0\n", 0, 3, " has 2 lines, but there are 3 sentences"),
    ],
)
def test_bad_gold(tmp_path, text, base, sentences, message):
    path = tmp_path / "bad.gold"
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        read_gold(path, base, sentences)
    assert str(error.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        ("0-0 1-2\n2-0\n", 0, ":2: link 2 to 0 is out of range: counted from 0, the pair has 2 "),
        ("0-0 1-3\n0-0\n", 0, ":1: link 1 to 3 is out of range"),
        ("2-3 1p1\n2p2\n", 1, ":2: link 2 to 2 is out of range: counted from 1, the pair has 2 "),
        ("\n1 0 0 S\n2 0 1 P\n", 0, ":3: link 0 to 1 is out of range"),
        ("0-0\n", 0, " has 1 lines, but there are 2 sentences"),
        ("3 0 0 S\n", 0, ":1: no sentence 3; sentences are 1 to 2"),
    ],
)
def test_gold_outside_its_pair(tmp_path, text, base, message):
    """The pairs have 2 source and 3 target words, and 2 and 1."""
    path = tmp_path / "bad.gold"
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        read_gold(path, base, sizes=[(2, 3), (2, 1)])
    assert str(error.value).startswith(f"{path}{message}")
    assert "\n" not in str(error.value)


def test_gold_inside_its_pair(tmp_path):
    path = tmp_path / "good.gold"
    for text in ("2-3 1p1\n2-1\n", "1 2 3 S\n1 1 1 P\n2 2 1\n"):
        path.write_text(text)
        assert read_gold(path, 1, sizes=[(2, 3), (2, 1)]) == read_gold(path, 1)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_links(tmp_path / "nowhere")
