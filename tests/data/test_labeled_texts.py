"""Tests of labeled texts from files: formats, splits, and error messages with locations."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.corpus import location
from regard.data.formats.labeled_texts import (
    LabeledTextFiles,
    guess_format,
    hash_split,
    read_label_folders,
    read_table,
)
from regard.data.formats.tables import numbered_rows

RECORDS = [{"text": "A fine, fine film .", "label": "good"}, {"text": 'so "so"', "label": "bad"}]


def write_file(path, data):
    """Write bytes or text, gzipped if the name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def error_message(reader):
    with pytest.raises(ValueError) as caught:
        list(reader)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read_all(path, **options):
    return list(LabeledTextFiles(path, held_out=0.0, **options).read("train"))


@pytest.mark.parametrize("suffix", ["", ".gz"])
class TestFormats:
    def test_tsv(self, tmp_path, suffix):
        text = "".join(f"{r['text']}\t{r['label']}\n" for r in RECORDS)
        assert read_all(write_file(tmp_path / f"a.tsv{suffix}", text)) == RECORDS
        with_header = write_file(
            tmp_path / f"b.tsv{suffix}", "id\tgold\tsentence\r\n1\tgood\tfine\r\n"
        )
        records = read_all(with_header, fields={"text": "sentence", "label": "gold"})
        assert records == [{"label": "good", "text": "fine"}]

    def test_csv(self, tmp_path, suffix):
        text = 'good,"A fine, fine film ."\nbad,"so ""so"""\n'
        records = read_all(write_file(tmp_path / f"a.csv{suffix}", text), columns=["label", "text"])
        assert records == RECORDS
        multi_line = write_file(
            tmp_path / f"b.csv{suffix}", 'text,label\n"one\n\ntwo",good\nthree,bad\n'
        )
        corpus = LabeledTextFiles(
            multi_line, fields={"text": "text", "label": "label"}, held_out=0.0
        )
        assert [r["text"] for r in corpus.read("train")] == ["one\n\ntwo", "three"]
        assert [location(corpus, "train", n) for n in range(2)] == [
            f"{multi_line}:2",
            f"{multi_line}:5",
        ]

    def test_json_lines(self, tmp_path, suffix):
        rows = [{"d": {"review": "fine"}, "stars": 1}, {"d": {"review": "bad"}, "stars": "2"}]
        path = write_file(
            tmp_path / f"a.jsonl{suffix}", "".join(json.dumps(r) + "\n" for r in rows)
        )
        records = read_all(path, fields={"text": "d.review", "label": "stars"})
        assert records == [{"text": "fine", "label": "1"}, {"text": "bad", "label": "2"}]
        boolean = write_file(tmp_path / f"b.jsonl{suffix}", '{"text": "x", "label": true}\n')
        assert read_all(boolean) == [{"text": "x", "label": "true"}]

    def test_parallel(self, tmp_path, suffix):
        texts = write_file(tmp_path / f"x_text.txt{suffix}", "fine\nbad\n")
        labels = write_file(tmp_path / f"x_labels.txt{suffix}", "1\n0\n")
        corpus = LabeledTextFiles([texts, labels], held_out=0.0)
        records = list(corpus.read("train"))
        assert records == [{"text": "fine", "label": "1"}, {"text": "bad", "label": "0"}]
        assert location(corpus, "train", 1) == f"{labels}:2"

    def test_folders(self, tmp_path, suffix):
        write_file(tmp_path / "set" / "good" / f"b.txt{suffix}", "fine\nfilm\n")
        write_file(tmp_path / "set" / "good" / f"a.txt{suffix}", "\ufeffgreat")
        write_file(tmp_path / "set" / "bad" / f"a.txt{suffix}", "poor\r\nthing")
        write_file(tmp_path / "set" / "good" / "notes.md", "not a text")
        corpus = LabeledTextFiles(tmp_path / "set", held_out=0.0)
        assert list(corpus.read("train")) == [
            {"text": "poor\nthing", "label": "bad"},
            {"text": "great", "label": "good"},
            {"text": "fine\nfilm", "label": "good"},
        ]
        assert location(corpus, "train", 1).endswith(f"good/a.txt{suffix}")

    def test_text_pairs(self, tmp_path, suffix):
        path = write_file(tmp_path / f"a.tsv{suffix}", "7\tIt rains\tIt is wet\tyes\n")
        records = read_all(path, columns=["-", "text", "pair", "label"])
        assert records == [{"text": "It rains", "pair": "It is wet", "label": "yes"}]


# A lone CR would end a line of a CSV.
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=9)


@settings(max_examples=25)
@given(st.lists(st.tuples(cells, cells), min_size=1))
def test_csv_with_any_text(tmp_path_factory, rows):
    """Quote every cell by hand; line numbers count the line ends in cells."""
    path = tmp_path_factory.getbasetemp() / "any.csv"
    text = "".join(
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in rows
    )
    path.write_bytes(text.encode())
    starts = [1]
    for row in rows[:-1]:
        starts.append(starts[-1] + 1 + sum(cell.count("\n") for cell in row))
    assert list(numbered_rows(path, "csv")) == list(zip(starts, map(list, rows), strict=True))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\tb\na\tb\tc\n", ":2: 3 columns, but 2 expected (text, label); separate them"),
        ("a.csv", "a,b\n\nc,d\n", ":2: the line is blank; remove it, or skip such rows"),
        ("a.csv", 'a,b\n"c,d\ne,f\n', ":2: not CSV (unexpected end of data); put a cell that"),
        ("a.csv", 'a,b\n"c" x,d\n', ":2: not CSV (',' expected after '\"'); put a cell that"),
        ("a.tsv", "a\tb\na\t\n", ":2: the label is empty"),
        ("a.jsonl", '{"text": "a", "label": ""}\n', ":1: the label is empty"),
        ("a.jsonl", '{"text": 3, "label": "a"}\n', ":1: 'text' must be str, not int"),
        ("a.jsonl", '{"text": "a", "label": 1.5}\n', ":1: 'label' must be str or int, not float"),
        ("a.jsonl", '{"text": "a"}\n', ":1: no field 'label'; the fields are: text"),
        ("a.tsv", b"a\tb\nna\xefve\tx\n", ":2: byte 3 is 0xef, which is not UTF-8; convert"),
        ("a.csv", b"a,b\nna\xefve,x\n", ":2: byte 3 is 0xef, which is not UTF-8; convert"),
        ("a.tsv", "", ": no lines (empty)"),
    ],
)
def test_error_messages_name_the_line(tmp_path, name, text, message):
    path = write_file(tmp_path / name, text)
    assert error_message(LabeledTextFiles(path, held_out=0.0).read("train")).startswith(
        f"{path}{message}"
    )


def test_bad_headers(tmp_path):
    fields = {"text": "review", "label": "label"}
    path = write_file(tmp_path / "a.tsv", "text\tlabel\nx\ty\n")
    message = error_message(read_table(path, "tsv", fields=fields))
    assert message == f"{path}:1: the header must have 'review' once; it has text, label"
    path = write_file(tmp_path / "b.csv", "review,review,label\nx,y,z\n")
    assert "must have 'review' once" in error_message(read_table(path, "csv", fields=fields))


def test_bad_folders(tmp_path):
    (tmp_path / "set").mkdir()
    assert error_message(read_label_folders(tmp_path / "set")).endswith(
        "set: no folders; make one with .txt files for each label"
    )
    (tmp_path / "set" / "good").mkdir()
    assert error_message(read_label_folders(tmp_path / "set")).endswith(
        "good: no .txt or .txt.gz file; add one"
    )
    bad = write_file(tmp_path / "set" / "good" / "a.txt", b"x\n\xff")
    assert error_message(read_label_folders(tmp_path / "set")).startswith(
        f"{bad}:2: byte 1 is 0xff"
    )


class TestSplits:
    def corpus(self, tmp_path, **options):
        rows = "".join(f"text {n % 700}\t{n % 3}\n" for n in range(1000))
        return LabeledTextFiles(write_file(tmp_path / "a.tsv", rows), **options)

    def test_held_out_splits(self, tmp_path):
        """The splits are disjoint, complete and reproducible; dev and test are a tenth each."""
        corpus = self.corpus(tmp_path)
        assert corpus.splits == ("train", "dev", "test")
        records_by_split = {split: list(corpus.read(split)) for split in corpus.splits}
        assert sum(map(len, records_by_split.values())) == 1000
        texts = {
            split: {record["text"] for record in records}
            for split, records in records_by_split.items()
        }
        assert not texts["train"] & (texts["dev"] | texts["test"])
        assert not texts["dev"] & texts["test"]
        assert 50 < len(records_by_split["dev"]) < 150
        assert 50 < len(records_by_split["test"]) < 150
        assert list(corpus.read("dev")) == records_by_split["dev"]
        number = next(n for n in range(1000) if f"text {n}" == records_by_split["dev"][0]["text"])
        assert location(corpus, "dev", 0).endswith(f"a.tsv:{number + 1}")
        assert "dev 10% of train, test 10% of train" in corpus.describe()

    def test_given_splits_are_not_held_out(self, tmp_path):
        test_file = write_file(tmp_path / "test.tsv", "text 1\t0\n")
        corpus = self.corpus(tmp_path, test=test_file)
        assert list(corpus.read("test")) == [{"text": "text 1", "label": "0"}]
        assert len(list(corpus.read("train"))) + len(list(corpus.read("dev"))) == 1000
        with_both = self.corpus(tmp_path, dev=test_file, test=test_file)
        assert len(list(with_both.read("train"))) == 1000
        without_held_out = self.corpus(tmp_path, held_out=0.0)
        assert without_held_out.splits == ("train",)
        assert len(list(without_held_out.read("train"))) == 1000

    def test_hash_split_is_stable(self):
        """Published results depend on these splits."""
        shares = {"dev": 0.1, "test": 0.2}
        splits = [hash_split(f"text {n}", shares) for n in range(10_000)]
        assert abs(splits.count("dev") - 1000) < 100
        assert abs(splits.count("test") - 2000) < 130
        assert [n for n in range(30) if splits[n] == "dev"] == DEV_INDICES

    def test_too_few_records(self, tmp_path):
        path = write_file(tmp_path / "a.tsv", "one\t1\n")
        corpus = LabeledTextFiles(path, held_out=0.01)
        assert len(list(corpus.read("train"))) == 1
        assert error_message(corpus.read("dev")) == (
            f"{path}: no records fall into dev; give files for dev"
        )


DEV_INDICES = [2, 3, 6, 18]


def test_guess_format(tmp_path):
    assert guess_format(["a.tsv.gz"]) == guess_format(["-"]) == "tsv"
    assert guess_format(["a.csv"]) == "csv"
    assert guess_format(["a.jsonl"]) == "jsonl"
    assert guess_format(["a", "b"]) == "parallel"
    assert guess_format([tmp_path]) == "folder"
    with pytest.raises(ValueError, match=r"a.xlsx: cannot infer the format from .xlsx"):
        guess_format(["a.xlsx"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["text", "gold"]}, "columns must name 'label' once, not "),
        ({"fields": {"label": "x"}}, "fields must name 'text' once, not"),
        ({"columns": ["text", "label"], "fields": {"text": "a", "label": "b"}}, "not both"),
        ({"format": "jsonl", "columns": ["text", "label"]}, "columns do not apply to jsonl"),
        (
            {"format": "parallel", "fields": {"text": "a", "label": "b"}},
            "fields do not apply to parallel",
        ),
        ({"format": "parallel"}, "train: parallel needs 2 files, not 1"),
        ({"format": "folder"}, "a.tsv: there is no such folder"),
        ({"dev": "none.tsv"}, "none.tsv: there is no such file"),
        ({"held_out": 0.5}, "held_out must be at least 0 and less than 0.5, not 0.5"),
    ],
)
def test_bad_settings(tmp_path, options, message):
    path = write_file(tmp_path / "a.tsv", "a\tb\n")
    with pytest.raises(ValueError, match=message):
        LabeledTextFiles(path, **options)
