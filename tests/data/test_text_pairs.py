"""Readers: what is in the file, and for every wrong one a line that says where and what to do."""

import gzip
import io
import json
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.formats import lines as lines_module
from regard.data.formats import text_pairs as files_module
from regard.data.formats.lines import read_lines
from regard.data.formats.text_pairs import (
    TextPairFiles,
    guess_format,
    read_json_lines,
    read_pairs,
    read_parallel,
    read_parquet,
    read_tsv,
)

PAIRS = [{"source": "A man .", "target": "Ein Mann ."}, {"source": "é\u2028ü\x85", "target": ""}]
# Text of one line, in one cell.
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r"), max_size=9)


def put(path, data):
    """Write bytes, or text; gzipped if the name says so."""
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def as_tsv(records, end="\n"):
    return "".join(f"{record['source']}\t{record['target']}{end}" for record in records)


def said(reader):
    with pytest.raises(ValueError) as caught:
        list(reader)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_tsv(tmp_path, name, end, start):
    assert list(read_tsv(put(tmp_path / name, start + as_tsv(PAIRS, end)))) == PAIRS
    unended = (start + as_tsv(PAIRS, end)).removesuffix(end)
    assert list(read_tsv(put(tmp_path / name, unended))) == PAIRS


@given(st.lists(st.tuples(cells, cells), min_size=1), st.integers(1, 9))
def test_tsv_holds_any_text(tmp_path_factory, rows, block):
    """However the blocks fall that the file is read in."""
    path = tmp_path_factory.getbasetemp() / "any.tsv"
    text = "\n".join("\t".join(row) for row in rows) + "\n"
    path.write_bytes(text.encode())
    if rows[0][0].startswith("\ufeff"):
        rows[0] = (rows[0][0][1:], rows[0][1])
    before, lines_module.BLOCK_BYTES = lines_module.BLOCK_BYTES, block
    try:
        found = [(record["source"], record["target"]) for record in read_tsv(path)]
    finally:
        lines_module.BLOCK_BYTES = before
    assert found == rows


def test_columns(tmp_path):
    path = put(tmp_path / "a.tsv", "Go.\tVa !\tCC-BY\nHi.\tSalut !\tCC-BY\n")
    found = list(read_tsv(path, ["target", "source", "-"]))
    assert found[0] == {"target": "Go.", "source": "Va !"}


def test_ragged_tsv(tmp_path):
    path = put(tmp_path / "a.tsv", "a\tb\nc\td\te\n")
    assert said(read_tsv(path)).startswith(
        f"{path}:2: 3 columns, but 2 expected (source, target); "
    )
    path = put(tmp_path / "a.tsv", "a\tb\n\n")
    assert said(read_tsv(path)).startswith(f"{path}:2: 1 column, but 2 expected")


def test_not_utf8(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 8)
    path = put(tmp_path / "a.tsv", b"a\tb\nc\td\nna\xefve\tx\n")
    told = said(read_tsv(path))
    assert told.startswith(f"{path}:3: byte 3 is 0xef, which is not UTF-8; convert the file")
    assert "LATIN1" in told
    path = put(tmp_path / "b.tsv", "a\tb\n".encode("utf-16"))
    assert "iconv -f UTF-16" in said(read_tsv(path))


def test_before_the_error_there_are_records(tmp_path):
    path = put(tmp_path / "a.tsv", "a\tb\nc\n")
    reader = read_tsv(path)
    assert next(reader) == {"source": "a", "target": "b"}
    with pytest.raises(ValueError, match=":2:"):
        next(reader)


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path, data):
    path = put(tmp_path / "a.tsv", data)
    if data:
        assert list(read_lines(path)) == [""]  # a mark alone is one empty line
    else:
        assert said(read_tsv(path)) == f"{path}: empty, no line to read"


def test_missing_file_and_folder(tmp_path):
    assert said(read_tsv(tmp_path / "none.tsv")) == f"{tmp_path}/none.tsv: there is no such file"
    assert said(read_tsv(tmp_path)) == f"{tmp_path}: this is a folder; give a file"


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.99])
def test_damaged_gzip(tmp_path, cut, seed):
    whole = gzip.compress("".join(f"{n * seed}\t{n}\n" for n in range(2000)).encode())
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(whole[: int(cut * len(whole))])
    assert said(read_tsv(path)).startswith(f"{path}: damaged gzip file")
    path.write_bytes(b"a\tb\n")
    assert said(read_tsv(path)).startswith(f"{path}: damaged gzip file")
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 255
    path.write_bytes(broken)
    assert str(path) in said(read_tsv(path))


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "MAX_LINE_BYTES", 1 << 21)
    path = put(tmp_path / "a.tsv", b"x" * (1 << 22))
    assert said(read_tsv(path)) == f"{path}: a line has more than 2 MB: no text"


def test_parallel(tmp_path):
    one, two = put(tmp_path / "a.en", "a\nb\n"), put(tmp_path / "a.de.gz", "c\r\nd")
    assert list(read_parallel([one, two])) == [
        {"source": "a", "target": "c"},
        {"source": "b", "target": "d"},
    ]
    three = list(read_parallel([one, one, two], ["x", "y", "z"]))
    assert three[1] == {"x": "b", "y": "b", "z": "d"}


@pytest.mark.parametrize(("first", "second"), [(3, 5), (5, 3), (1, 2)])
def test_different_line_counts(tmp_path, first, second):
    one = put(tmp_path / "a.en", "x\n" * first)
    two = put(tmp_path / "a.de", "y\n" * second)
    told = said(read_parallel([one, two]))
    assert told == f"{one} has {first}, {two} has {second} lines; parallel files need equally many"


def test_parallel_arguments(tmp_path):
    assert "1 files for 2 fields" in said(read_parallel([tmp_path / "a"]))
    assert "only one" in said(read_parallel(["-", "-"]))


def test_json_lines(tmp_path):
    rows = [
        {"translation": {"en": "é", "de": "ü"}, "id": 3},
        {"translation": {"en": "", "de": "b"}},
    ]
    text = json.dumps(rows[0]) + "\n" + json.dumps(rows[1], ensure_ascii=False) + "\r\n"
    path = put(tmp_path / "a.jsonl.gz", text)
    fields = {"source": "translation.en", "target": "translation.de"}
    assert list(read_json_lines(path, fields)) == [
        {"source": "é", "target": "ü"},
        {"source": "", "target": "b"},
    ]
    tags = put(tmp_path / "tags.jsonl", '{"words": ["a", "b"]}\n')
    assert list(read_json_lines(tags, {"words": "words"}, value_type=list)) == [
        {"words": ["a", "b"]}
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not JSON (Expecting property name"),
        ("", "not JSON (Expecting value); put one object on each line"),
        ("[" * 100_000, "not JSON (RecursionError)"),
        ("1" * 5000, "not JSON (ValueError)"),
        ("[1]", "expected an object with the field 'a', not a list"),
        ('{"b": "x", "c": "y"}', "no field 'a'; there are: b, c"),
        ("{}", "no field 'a'; there are: none"),
        ('{"a": 3}', "'a' must be str, not int"),
        ('{"a": null}', "'a' must be str, not NoneType"),
        (r'{"a": "\ud83d"}', r"an escape like \ud800 is half of a character"),
    ],
)
def test_bad_json(tmp_path, line, words):
    path = put(tmp_path / "a.jsonl", '{"a": "fine"}\n' + line + "\n")
    told = said(read_json_lines(path, {"source": "a"}))
    assert told.startswith(f"{path}:2: ")
    assert words in told


def test_an_escape_for_a_whole_character(tmp_path):
    path = put(tmp_path / "a.jsonl", r'{"a": "\ud83d\ude00 \u00e9"}')
    assert list(read_json_lines(path, {"source": "a"})) == [{"source": "😀 é"}]


def test_parquet_needs_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "find_spec", lambda _: None)
    path = put(tmp_path / "a.parquet", b"")
    assert (
        said(read_parquet(path, {"a": "a"}))
        == f"{path}: Parquet needs pyarrow: pip install pyarrow"
    )


def test_parquet(tmp_path):
    arrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    many = {"en": [str(n) for n in range(2500)], "de": ["x"] * 2500, "id": list(range(2500))}
    writer.write_table(arrow.table(many), path, row_group_size=700)
    fields = {"source": "en", "target": "de"}
    found = list(read_parquet(path, fields))
    assert [record["source"] for record in found] == many["en"]
    packed = put(tmp_path / "a.parquet.gz", path.read_bytes())
    assert list(read_parquet(packed, fields)) == found
    assert (
        said(read_parquet(path, {"source": "fr"}))
        == f"{path}: no column 'fr'; there are: en, de, id"
    )
    assert said(read_parquet(path, {"source": "id"})) == f"{path}: row 1: 'id' must be str, not int"
    writer.write_table(arrow.table({"en": ["a", None]}), path)
    assert (
        said(read_parquet(path, {"source": "en"}))
        == f"{path}: row 2: 'en' must be str, not NoneType"
    )
    writer.write_table(arrow.table({"en": arrow.array([], arrow.string())}), path)
    assert said(read_parquet(path, {"source": "en"})) == f"{path}: empty, no row to read"
    path.write_bytes(b"PAR1 not at all")
    assert said(read_parquet(path, {"source": "en"})).startswith(
        f"{path}: damaged, or not Parquet ("
    )


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"a\tb\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert list(read_tsv("-")) == [{"source": "a", "target": "b"}]
    assert said(read_tsv("-")) == "standard input: empty, no line to read; it can be read only once"


class TestFiles:
    def test_every_split_every_time(self, tmp_path):
        train = put(tmp_path / "train.tsv", as_tsv(PAIRS))
        dev = put(tmp_path / "dev.tsv.gz", as_tsv(PAIRS[:1]))
        corpus = TextPairFiles(train, dev)
        assert corpus.splits == ("train", "dev")
        for _ in range(2):
            assert list(corpus.read("train")) == PAIRS
            assert list(corpus.read("dev")) == PAIRS[:1]
        with pytest.raises(ValueError, match="split must be one of train, dev, not 'test'"):
            corpus.read("test")
        assert corpus.describe().startswith(f"files (tsv): train {train}, dev {dev}")

    def test_formats_by_name(self):
        assert guess_format(["a.tsv"]) == guess_format(["-"]) == "tsv"
        assert guess_format(["a.jsonl.gz"]) == "jsonl"
        assert guess_format(["a.parquet"]) == "parquet"
        assert guess_format(["a.en", "a.de"]) == "parallel"
        with pytest.raises(ValueError, match=r"a.xlsx: .xlsx tells no format"):
            guess_format(["a.xlsx"])

    def test_other_formats(self, tmp_path):
        sides = [put(tmp_path / "a.en", "a\n"), put(tmp_path / "a.de", "b\n")]
        assert list(TextPairFiles(sides).read("train")) == [{"source": "a", "target": "b"}]
        rows = put(tmp_path / "a.jsonl", '{"en": "a", "de": "b"}\n')
        corpus = TextPairFiles(rows, fields={"source": "en", "target": "de"})
        assert list(corpus.read("train")) == [{"source": "a", "target": "b"}]
        odd = put(tmp_path / "a.txt", "a\tb\n")
        assert list(TextPairFiles(odd, format="tsv").read("train")) == [
            {"source": "a", "target": "b"}
        ]

    def test_wrong_ones_are_found_at_once(self, tmp_path):
        train = put(tmp_path / "a.tsv", "a\tb\n")
        with pytest.raises(ValueError, match=r"dev.tsv: there is no such file"):
            TextPairFiles(train, tmp_path / "dev.tsv")
        with pytest.raises(ValueError, match=r"train: tsv needs one file, not 2"):
            TextPairFiles([train, train], format="tsv")
        with pytest.raises(
            ValueError, match=r"dev: parallel needs 2 files \(source, target\), not 1"
        ):
            TextPairFiles([train, train], dev=train)


def test_memory_stays_small(tmp_path):
    """A file of 15 MB passes through some megabytes."""
    path = tmp_path / "a.tsv"
    with path.open("wb") as file:
        for _ in range(150):
            file.write(b"a source sentence of some words\ta target sentence of some words\n" * 1600)
    assert path.stat().st_size > 15_000_000
    tracemalloc.start()
    count = sum(1 for _ in read_tsv(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 240_000
    assert peak < 8_000_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.src-tgt", "oh , oh !   ||| ach , ach !  \na ||| b\nlonely |||\n"),
        ("x.gz", "oh , oh ! ||| ach , ach !\r\na|||b\r\nlonely ||| "),
        ("x", "oh , oh !\tach , ach !\na\tb\nlonely\t\n"),
        ("x.tsv.gz", "oh , oh !\tach , ach !\na\tb\nlonely\t\n"),
    ],
)
def test_pairs_of_one_file(tmp_path, name, text):
    found = list(read_pairs([put(tmp_path / name, text)]))
    assert found[0] == {"source": "oh , oh !", "target": "ach , ach !"}
    assert found[1:] == [{"source": "a", "target": "b"}, {"source": "lonely", "target": ""}]


def test_pairs_of_other_files(tmp_path, monkeypatch):
    sides = [put(tmp_path / name, text) for name, text in (("a", "1\n2\n"), ("b", "x\ny\n"))]
    assert list(read_pairs(sides)) == [
        {"source": "1", "target": "x"},
        {"source": "2", "target": "y"},
    ]
    lines_of = put(tmp_path / "x.jsonl", '{"source": "1", "target": "x"}\n')
    assert list(read_pairs([lines_of])) == [{"source": "1", "target": "x"}]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 ||| x\n")))
    assert list(read_pairs(["-"])) == [{"source": "1", "target": "x"}]
    with pytest.raises(ValueError, match=r"one file or two .*, not 3"):
        read_pairs([*sides, lines_of])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a ||| b\nno bars\n", ":2: 1 part, but source and target expected; put one ||| between"),
        ("a ||| b\na ||| b ||| c\n", ":2: 3 parts, but source and target expected; put one |||"),
        ("neither\n", ":1: 1 part, but source and target expected; put one ||| between the two"),
        ("a\tb\n\n", ":2: 1 part, but source and target expected; put one tab between the two"),
    ],
)
def test_pairs_that_are_none(tmp_path, text, says):
    path = put(tmp_path / "pairs.txt", text)
    assert said(read_pairs([path])).startswith(f"{path}{says}")
