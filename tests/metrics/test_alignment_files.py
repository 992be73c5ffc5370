"""Alignments in files."""

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
def test_what_is_written_is_read(tmp_path_factory, alignments, base):
    path = tmp_path_factory.mktemp("links") / "out.align"
    write_links(path, alignments, base)
    assert read_links(path, base) == alignments
    assert [gold.sure for gold in read_gold(path, base)] == alignments


def test_pharaoh():
    assert to_pharaoh([(2, 1), (0, 0), (10, 3)]) == "0-0 2-1 10-3"
    assert to_pharaoh([(2, 1)], base=1) == "3-2"
    assert to_pharaoh([]) == ""


def test_lines_as_they_come(tmp_path):
    """Empty lines are sentences without links; endings of Windows and doubled links do no harm."""
    path = tmp_path / "out.align"
    path.write_bytes(b"0-0 1-2\r\n\n  3-1\t3-1 \n")
    assert read_links(path) == [{(0, 0), (1, 2)}, frozenset(), {(3, 1)}]


def test_gold_with_possible_links(tmp_path):
    """The WPT files of English and French: from 1, `p` between possible ones."""
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
    one, two, three = read_gold(path)
    assert one == GoldAlignment(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2)}))
    assert two == GoldAlignment(frozenset(), frozenset())
    assert three == GoldAlignment(frozenset({(5, 4)}), frozenset({(5, 4), (5, 5)}))
    assert len(read_gold(path, sentences=5)) == 5


def test_an_empty_file_has_no_sentences(tmp_path):
    path = tmp_path / "none"
    path.write_text("")
    assert read_links(path) == read_gold(path) == []


@pytest.mark.parametrize(
    ("text", "base", "says"),
    [
        (b"0-0\n0-0 1:2\n", 0, ":2: expected links like 0-0 2-1, not '1:2'"),
        (b"0-0\n\n-1-0\n", 0, ":3: expected links like 0-0 2-1, not '-1-0'"),
        (b"0-\n", 0, ":1: expected links"),
        (b"1-1\n1-0\n", 1, ":2: there is no word 0 when words are counted from 1"),
        (b"0-0\n\xff-0\n", 0, ":2: not UTF-8"),
        (b"0-0 1p1\n", 0, ":1: possible links are for gold"),
    ],
)
def test_bad_lines(tmp_path, text, base, says):
    path = tmp_path / "bad.align"
    path.write_bytes(text)
    with pytest.raises(ValueError) as error:
        read_links(path, base)
    assert str(error.value).startswith(f"{path}{says}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "base", "sentences", "says"),
    [
        ("1 0 0 S\n1 0 S\n", 0, None, ":2: expected 'sentence i j S', not '1 0 S'"),
        ("1 0 0 S\n0-0\n", 0, None, ":2: expected 'sentence i j S'"),
        ("0 0 0 S\n", 0, None, ":1: there is no sentence 0: they are counted from 1"),
        ("1 0 0 S\n4 0 0 S\n", 0, 3, ":2: there is no sentence 4: they are 1 to 3"),
        ("1 1 0 S\n", 1, None, ":1: there is no word 0"),
        ("0-0\n1 0 0 S\n", 0, None, ":2: expected links"),
        ("0-0\n0-0\n", 0, 3, " has 2 lines, but there are 3 sentences"),
    ],
)
def test_bad_gold(tmp_path, text, base, sentences, says):
    path = tmp_path / "bad.gold"
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        read_gold(path, base, sentences)
    assert str(error.value).startswith(f"{path}{says}")


@pytest.mark.parametrize(
    ("text", "base", "says"),
    [
        ("0-0 1-2\n2-0\n", 0, ":2: link 2 to 0 is out of range: counted from 0, the pair has 2 "),
        ("0-0 1-3\n0-0\n", 0, ":1: link 1 to 3 is out of range"),
        ("2-3 1p1\n2p2\n", 1, ":2: link 2 to 2 is out of range: counted from 1, the pair has 2 "),
        ("\n1 0 0 S\n2 0 1 P\n", 0, ":3: link 0 to 1 is out of range"),
        ("0-0\n", 0, " has 1 lines, but there are 2 sentences"),
        ("3 0 0 S\n", 0, ":1: there is no sentence 3: they are 1 to 2"),
    ],
)
def test_gold_outside_its_pair(tmp_path, text, base, says):
    """Two pairs: of 2 source and 3 target words, and of 2 and 1."""
    path = tmp_path / "bad.gold"
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        read_gold(path, base, sizes=[(2, 3), (2, 1)])
    assert str(error.value).startswith(f"{path}{says}")
    assert "\n" not in str(error.value)


def test_gold_inside_its_pair(tmp_path):
    path = tmp_path / "good.gold"
    for text in ("2-3 1p1\n2-1\n", "1 2 3 S\n1 1 1 P\n2 2 1\n"):
        path.write_text(text)
        assert read_gold(path, 1, sizes=[(2, 3), (2, 1)]) == read_gold(path, 1)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_links(tmp_path / "nowhere")
