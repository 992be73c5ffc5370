"""Tests of readers of text pairs: formats, bounded memory, and error messages."""

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


def write_file(path, data):
    """Write bytes or text, gzipped if the name ends in .gz."""
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def as_tsv(records, end="\n"):
    return "".join(f"{record['source']}\t{record['target']}{end}" for record in records)


def error_message(reader):
    with pytest.raises(ValueError) as caught:
        list(reader)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_tsv(tmp_path, name, end, start):
    assert list(read_tsv(write_file(tmp_path / name, start + as_tsv(PAIRS, end)))) == PAIRS
    unended = (start + as_tsv(PAIRS, end)).removesuffix(end)
    assert list(read_tsv(write_file(tmp_path / name, unended))) == PAIRS


@given(st.lists(st.tuples(cells, cells), min_size=1), st.integers(1, 9))
def test_tsv_with_any_text(tmp_path_factory, rows, block_bytes):
    """Records do not depend on the size of the blocks in which the file is read."""
    path = tmp_path_factory.getbasetemp() / "any.tsv"
    text = "\n".join("\t".join(row) for row in rows) + "\n"
    path.write_bytes(text.encode())
    if rows[0][0].startswith("\ufeff"):
        rows[0] = (rows[0][0][1:], rows[0][1])
    previous, lines_module.BLOCK_BYTES = lines_module.BLOCK_BYTES, block_bytes
    try:
        records = [(record["source"], record["target"]) for record in read_tsv(path)]
    finally:
        lines_module.BLOCK_BYTES = previous
    assert records == rows


def test_columns(tmp_path):
    path = write_file(tmp_path / "a.tsv", "Go.\tVa !\tCC-BY\nHi.\tSalut !\tCC-BY\n")
    records = list(read_tsv(path, ["target", "source", "-"]))
    assert records[0] == {"target": "Go.", "source": "Va !"}


def test_ragged_tsv(tmp_path):
    path = write_file(tmp_path / "a.tsv", "a\tb\nc\td\te\n")
    assert error_message(read_tsv(path)).startswith(
        f"{path}:2: 3 columns, but 2 expected (source, target); "
    )
    path = write_file(tmp_path / "a.tsv", "a\tb\nc\n")
    assert error_message(read_tsv(path)).startswith(f"{path}:2: 1 column, but 2 expected")


def test_not_utf8(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 8)
    path = write_file(tmp_path / "a.tsv", b"a\tb\nc\td\nna\xefve\tx\n")
    message = error_message(read_tsv(path))
    assert message.startswith(f"{path}:3: byte 3 is 0xef, which is not UTF-8; convert the file")
    assert "LATIN1" in message
    path = write_file(tmp_path / "b.tsv", "a\tb\n".encode("utf-16"))
    assert "iconv -f UTF-16" in error_message(read_tsv(path))


def test_records_before_an_error_are_read(tmp_path):
    path = write_file(tmp_path / "a.tsv", "a\tb\nc\n")
    reader = read_tsv(path)
    assert next(reader) == {"source": "a", "target": "b"}
    with pytest.raises(ValueError, match=":2:"):
        next(reader)


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path, data):
    path = write_file(tmp_path / "a.tsv", data)
    if data:
        assert list(read_lines(path)) == [""]  # a BOM alone is one empty line
    else:
        assert error_message(read_tsv(path)) == f"{path}: no lines (empty)"


def test_missing_file_and_folder(tmp_path):
    assert (
        error_message(read_tsv(tmp_path / "none.tsv"))
        == f"{tmp_path}/none.tsv: there is no such file"
    )
    assert error_message(read_tsv(tmp_path)) == f"{tmp_path}: this is a folder; give a file"


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.99])
def test_damaged_gzip(tmp_path, cut, seed):
    gzipped = gzip.compress("".join(f"{n * seed}\t{n}\n" for n in range(2000)).encode())
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzipped[: int(cut * len(gzipped))])
    assert error_message(read_tsv(path)).startswith(f"{path}: damaged gzip file")
    path.write_bytes(b"a\tb\n")
    assert error_message(read_tsv(path)).startswith(f"{path}: damaged gzip file")
    damaged = bytearray(gzipped)
    damaged[len(gzipped) // 2] ^= 255
    path.write_bytes(damaged)
    assert str(path) in error_message(read_tsv(path))


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_a_line_without_end(tmp_path, monkeypatch, name):
    monkeypatch.setattr(lines_module, "MAX_LINE_BYTES", 1 << 21)
    path = write_file(tmp_path / name, b"x" * (1 << 22))
    assert error_message(read_tsv(path)) == f"{path}: a line of more than 2 MB; give a text file"


def test_parallel(tmp_path):
    source_path, target_path = (
        write_file(tmp_path / "a.en", "a\nb\n"),
        write_file(tmp_path / "a.de.gz", "c\r\nd"),
    )
    assert list(read_parallel([source_path, target_path])) == [
        {"source": "a", "target": "c"},
        {"source": "b", "target": "d"},
    ]
    records = list(read_parallel([source_path, source_path, target_path], ["x", "y", "z"]))
    assert records[1] == {"x": "b", "y": "b", "z": "d"}


@pytest.mark.parametrize(("first", "second"), [(3, 5), (5, 3), (1, 2)])
def test_different_line_counts(tmp_path, first, second):
    source_path = write_file(tmp_path / "a.en", "x\n" * first)
    target_path = write_file(tmp_path / "a.de", "y\n" * second)
    message = error_message(read_parallel([source_path, target_path]))
    counts = f"{source_path} has {first}, {target_path} has {second} lines"
    assert message == f"{counts}; parallel files need the same number"


def test_parallel_arguments(tmp_path):
    assert "1 files for 2 fields" in error_message(read_parallel([tmp_path / "a"]))
    assert "only one" in error_message(read_parallel(["-", "-"]))


def test_json_lines(tmp_path):
    rows = [
        {"translation": {"en": "é", "de": "ü"}, "id": 3},
        {"translation": {"en": "", "de": "b"}},
    ]
    text = json.dumps(rows[0]) + "\n" + json.dumps(rows[1], ensure_ascii=False) + "\r\n"
    path = write_file(tmp_path / "a.jsonl.gz", text)
    fields = {"source": "translation.en", "target": "translation.de"}
    assert list(read_json_lines(path, fields)) == [
        {"source": "é", "target": "ü"},
        {"source": "", "target": "b"},
    ]
    tags = write_file(tmp_path / "tags.jsonl", '{"words": ["a", "b"]}\n')
    assert list(read_json_lines(tags, {"words": "words"}, value_type=list)) == [
        {"words": ["a", "b"]}
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "not JSON (Expecting property name"),
        ("", "not JSON (Expecting value, column 1); put one object on each line"),
        ("[" * 100_000, "more than 100 levels deep; put"),
        ("1" * 5000, "not JSON (Exceeds the limit"),
        ("[1]", "expected an object with the field 'a', not a list"),
        ('{"b": "x", "c": "y"}', "no field 'a'; the fields are: b, c"),
        ("{}", "no field 'a'; the fields are: none"),
        ('{"a": 3}', "'a' must be str, not int"),
        ('{"a": null}', "'a' must be str, not NoneType"),
        (r'{"a": "\ud83d"}', r"an escape like \ud800 is half of a character"),
    ],
)
def test_bad_json(tmp_path, line, expected):
    path = write_file(tmp_path / "a.jsonl", '{"a": "fine"}\n' + line + "\n")
    message = error_message(read_json_lines(path, {"source": "a"}))
    assert message.startswith(f"{path}:2: ")
    assert expected in message


def test_escaped_surrogate_pair(tmp_path):
    path = write_file(tmp_path / "a.jsonl", r'{"a": "\ud83d\ude00 \u00e9"}')
    assert list(read_json_lines(path, {"source": "a"})) == [{"source": "😀 é"}]


def test_parquet_needs_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "find_spec", lambda _: None)
    path = write_file(tmp_path / "a.parquet", b"")
    assert (
        error_message(read_parquet(path, {"a": "a"}))
        == f"{path}: Parquet needs pyarrow: pip install pyarrow"
    )


def test_parquet(tmp_path):
    arrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    columns = {"en": [str(n) for n in range(2500)], "de": ["x"] * 2500, "id": list(range(2500))}
    writer.write_table(arrow.table(columns), path, row_group_size=700)
    fields = {"source": "en", "target": "de"}
    records = list(read_parquet(path, fields))
    assert [record["source"] for record in records] == columns["en"]
    gzipped_path = write_file(tmp_path / "a.parquet.gz", path.read_bytes())
    assert list(read_parquet(gzipped_path, fields)) == records
    assert (
        error_message(read_parquet(path, {"source": "fr"}))
        == f"{path}: no column 'fr'; the columns are: en, de, id"
    )
    assert (
        error_message(read_parquet(path, {"source": "id"}))
        == f"{path}: row 1: 'id' must be str, not int"
    )
    writer.write_table(arrow.table({"en": ["a", None]}), path)
    assert (
        error_message(read_parquet(path, {"source": "en"}))
        == f"{path}: row 2: 'en' must be str, not NoneType"
    )
    writer.write_table(arrow.table({"en": arrow.array([], arrow.string())}), path)
    assert error_message(read_parquet(path, {"source": "en"})) == f"{path}: no rows (empty)"
    path.write_bytes(b"PAR1 not at all")
    assert error_message(read_parquet(path, {"source": "en"})).startswith(
        f"{path}: damaged, or not Parquet ("
    )


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"a\tb\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert list(read_tsv("-")) == [{"source": "a", "target": "b"}]
    assert (
        error_message(read_tsv("-")) == "standard input: no lines (empty); it can be read only once"
    )


class TestFiles:
    def test_splits_can_be_read_repeatedly(self, tmp_path):
        train = write_file(tmp_path / "train.tsv", as_tsv(PAIRS))
        dev = write_file(tmp_path / "dev.tsv.gz", as_tsv(PAIRS[:1]))
        corpus = TextPairFiles(train, dev)
        assert corpus.splits == ("train", "dev")
        for _ in range(2):
            assert list(corpus.read("train")) == PAIRS
            assert list(corpus.read("dev")) == PAIRS[:1]
        with pytest.raises(ValueError, match="split must be one of train, dev, not 'test'"):
            corpus.read("test")
        assert corpus.describe().startswith(f"files (tsv): train {train}, dev {dev}")

    def test_guess_format(self):
        assert guess_format(["a.tsv"]) == guess_format(["-"]) == "tsv"
        assert guess_format(["a.jsonl.gz"]) == "jsonl"
        assert guess_format(["a.parquet"]) == "parquet"
        assert guess_format(["a.en", "a.de"]) == "parallel"
        with pytest.raises(ValueError, match=r"a.xlsx: cannot infer the format from .xlsx"):
            guess_format(["a.xlsx"])

    def test_other_formats(self, tmp_path):
        sides = [write_file(tmp_path / "a.en", "a\n"), write_file(tmp_path / "a.de", "b\n")]
        assert list(TextPairFiles(sides).read("train")) == [{"source": "a", "target": "b"}]
        rows = write_file(tmp_path / "a.jsonl", '{"en": "a", "de": "b"}\n')
        corpus = TextPairFiles(rows, fields={"source": "en", "target": "de"})
        assert list(corpus.read("train")) == [{"source": "a", "target": "b"}]
        unknown_suffix = write_file(tmp_path / "a.txt", "a\tb\n")
        assert list(TextPairFiles(unknown_suffix, format="tsv").read("train")) == [
            {"source": "a", "target": "b"}
        ]

    def test_bad_settings(self, tmp_path):
        train = write_file(tmp_path / "a.tsv", "a\tb\n")
        with pytest.raises(ValueError, match=r"dev.tsv: there is no such file"):
            TextPairFiles(train, tmp_path / "dev.tsv")
        with pytest.raises(ValueError, match=r"train: tsv needs one file, not 2"):
            TextPairFiles([train, train], format="tsv")
        with pytest.raises(
            ValueError, match=r"dev: parallel needs 2 files \(source, target\), not 1"
        ):
            TextPairFiles([train, train], dev=train)


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_memory_is_bounded(tmp_path, monkeypatch, name):
    """A text of 4 MB is read in less than 1.5 MB, with blocks of 128 KB."""
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 1 << 17)
    line = b"a source sentence of some words\ta target sentence of some words\n"
    path = write_file(tmp_path / name, line * 64_000)
    tracemalloc.start()
    count = sum(1 for _ in read_tsv(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 64_000
    assert peak < 1_500_000


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
    records = list(read_pairs([write_file(tmp_path / name, text)]))
    assert records[0] == {"source": "oh , oh !", "target": "ach , ach !"}
    assert records[1:] == [{"source": "a", "target": "b"}, {"source": "lonely", "target": ""}]


def test_pairs_from_other_files(tmp_path, monkeypatch):
    sides = [write_file(tmp_path / name, text) for name, text in (("a", "1\n2\n"), ("b", "x\ny\n"))]
    assert list(read_pairs(sides)) == [
        {"source": "1", "target": "x"},
        {"source": "2", "target": "y"},
    ]
    json_path = write_file(tmp_path / "x.jsonl", '{"source": "1", "target": "x"}\n')
    assert list(read_pairs([json_path])) == [{"source": "1", "target": "x"}]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 ||| x\n")))
    assert list(read_pairs(["-"])) == [{"source": "1", "target": "x"}]
    with pytest.raises(ValueError, match=r"one file, or two .*, not 3"):
        read_pairs([*sides, json_path])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a ||| b\nno bars\n",
            ":2: 1 part, but source and target expected; separate them by one |||",
        ),
        (
            "a ||| b\na ||| b ||| c\n",
            ":2: 3 parts, but source and target expected; separate them by",
        ),
        ("neither\n", ":1: 1 part, but source and target expected; separate them by one |||"),
        ("a\tb\n\n", ":2: 1 part, but source and target expected; separate them by one tab"),
    ],
)
def test_bad_pairs(tmp_path, text, message):
    path = write_file(tmp_path / "pairs.txt", text)
    assert error_message(read_pairs([path])).startswith(f"{path}{message}")
