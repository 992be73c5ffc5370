"""Labeled texts from files: what is in them, and for every wrong one a line that says where."""

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
    numbered_csv_rows,
    read_label_folders,
    read_table,
)

RECORDS = [{"text": "A fine, fine film .", "label": "good"}, {"text": 'so "so"', "label": "bad"}]


def put(path, data):
    """Write bytes, or text; gzipped if the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def said(reader):
    with pytest.raises(ValueError) as caught:
        list(reader)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def all_of(path, **more):
    return list(LabeledTextFiles(path, held_out=0.0, **more).read("train"))


@pytest.mark.parametrize("packed", ["", ".gz"])
class TestFormats:
    def test_tsv(self, tmp_path, packed):
        text = "".join(f"{r['text']}\t{r['label']}\n" for r in RECORDS)
        assert all_of(put(tmp_path / f"a.tsv{packed}", text)) == RECORDS
        headed = put(tmp_path / f"b.tsv{packed}", "id\tgold\tsentence\r\n1\tgood\tfine\r\n")
        found = all_of(headed, fields={"text": "sentence", "label": "gold"})
        assert found == [{"label": "good", "text": "fine"}]

    def test_csv(self, tmp_path, packed):
        text = 'good,"A fine, fine film ."\nbad,"so ""so"""\n'
        found = all_of(put(tmp_path / f"a.csv{packed}", text), columns=["label", "text"])
        assert found == RECORDS
        lines = put(tmp_path / f"b.csv{packed}", 'text,label\n"one\n\ntwo",good\nthree,bad\n')
        corpus = LabeledTextFiles(lines, fields={"text": "text", "label": "label"}, held_out=0.0)
        assert [r["text"] for r in corpus.read("train")] == ["one\n\ntwo", "three"]
        assert [location(corpus, "train", n) for n in range(2)] == [f"{lines}:2", f"{lines}:5"]

    def test_json_lines(self, tmp_path, packed):
        rows = [{"d": {"review": "fine"}, "stars": 1}, {"d": {"review": "bad"}, "stars": "2"}]
        path = put(tmp_path / f"a.jsonl{packed}", "".join(json.dumps(r) + "\n" for r in rows))
        found = all_of(path, fields={"text": "d.review", "label": "stars"})
        assert found == [{"text": "fine", "label": "1"}, {"text": "bad", "label": "2"}]
        true = put(tmp_path / f"b.jsonl{packed}", '{"text": "x", "label": true}\n')
        assert all_of(true) == [{"text": "x", "label": "true"}]

    def test_parallel(self, tmp_path, packed):
        texts = put(tmp_path / f"x_text.txt{packed}", "fine\nbad\n")
        labels = put(tmp_path / f"x_labels.txt{packed}", "1\n0\n")
        corpus = LabeledTextFiles([texts, labels], held_out=0.0)
        found = list(corpus.read("train"))
        assert found == [{"text": "fine", "label": "1"}, {"text": "bad", "label": "0"}]
        assert location(corpus, "train", 1) == f"{labels}:2"

    def test_folders(self, tmp_path, packed):
        put(tmp_path / "set" / "good" / f"b.txt{packed}", "fine\nfilm\n")
        put(tmp_path / "set" / "good" / f"a.txt{packed}", "\ufeffgreat")
        put(tmp_path / "set" / "bad" / f"a.txt{packed}", "poor\r\nthing")
        put(tmp_path / "set" / "good" / "notes.md", "not a text")
        corpus = LabeledTextFiles(tmp_path / "set", held_out=0.0)
        assert list(corpus.read("train")) == [
            {"text": "poor\nthing", "label": "bad"},
            {"text": "great", "label": "good"},
            {"text": "fine\nfilm", "label": "good"},
        ]
        assert location(corpus, "train", 1).endswith(f"good/a.txt{packed}")

    def test_two_texts(self, tmp_path, packed):
        path = put(tmp_path / f"a.tsv{packed}", "7\tIt rains\tIt is wet\tyes\n")
        found = all_of(path, columns=["-", "text", "pair", "label"])
        assert found == [{"text": "It rains", "pair": "It is wet", "label": "yes"}]


# no lone CR: it would end a line of a CSV
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=9)


@settings(max_examples=25)
@given(st.lists(st.tuples(cells, cells), min_size=1))
def test_csv_holds_any_text(tmp_path_factory, rows):
    """Written by hand, with every cell quoted; line numbers count line ends in cells."""
    path = tmp_path_factory.getbasetemp() / "any.csv"
    text = "".join(
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in rows
    )
    path.write_bytes(text.encode())
    starts = [1]
    for row in rows[:-1]:
        starts.append(starts[-1] + 1 + sum(cell.count("\n") for cell in row))
    assert list(numbered_csv_rows(path)) == list(zip(starts, map(list, rows), strict=True))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.tsv", "a\tb\na\tb\tc\n", ":2: 3 columns, but 2 expected (text, label); separate them"),
        ("a.csv", "a,b\n\nc,d\n", ":2: 0 columns, but 2 expected (text, label); separate them by"),
        ("a.csv", 'a,b\n"c,d\ne,f\n', ":2: not CSV (unexpected end of data); put a cell with"),
        ("a.csv", 'a,b\n"c" x,d\n', ":2: not CSV (',' expected after '\"'); put a cell with a"),
        ("a.tsv", "a\tb\na\t\n", ":2: the label is empty"),
        ("a.jsonl", '{"text": "a", "label": ""}\n', ":1: the label is empty"),
        ("a.jsonl", '{"text": 3, "label": "a"}\n', ":1: 'text' must be str, not int"),
        ("a.jsonl", '{"text": "a", "label": 1.5}\n', ":1: 'label' must be str or int, not float"),
        ("a.jsonl", '{"text": "a"}\n', ":1: no field 'label'; there are: text"),
        ("a.tsv", b"a\tb\nna\xefve\tx\n", ":2: byte 3 is 0xef, which is not UTF-8; convert"),
        ("a.csv", b"a,b\nna\xefve,x\n", ":2: byte 3 is 0xef, which is not UTF-8; convert"),
        ("a.tsv", "", ": empty, no line to read"),
    ],
)
def test_what_is_wrong_has_a_place(tmp_path, name, text, words):
    path = put(tmp_path / name, text)
    assert said(LabeledTextFiles(path, held_out=0.0).read("train")).startswith(f"{path}{words}")


def test_wrong_headers(tmp_path):
    fields = {"text": "review", "label": "label"}
    path = put(tmp_path / "a.tsv", "text\tlabel\nx\ty\n")
    told = said(read_table(path, "tsv", fields=fields))
    assert told == f"{path}:1: the header must name 'review' once; it has: text, label"
    path = put(tmp_path / "b.csv", "review,review,label\nx,y,z\n")
    assert "must name 'review' once" in said(read_table(path, "csv", fields=fields))


def test_wrong_folders(tmp_path):
    (tmp_path / "set").mkdir()
    assert said(read_label_folders(tmp_path / "set")).endswith(
        "set: no folder in it; make one for each label, with .txt files"
    )
    (tmp_path / "set" / "good").mkdir()
    assert said(read_label_folders(tmp_path / "set")).endswith(
        "good: no .txt or .txt.gz file in it"
    )
    bad = put(tmp_path / "set" / "good" / "a.txt", b"x\n\xff")
    assert said(read_label_folders(tmp_path / "set")).startswith(f"{bad}:2: byte 1 is 0xff")


class TestSplits:
    def corpus(self, tmp_path, **more):
        rows = "".join(f"text {n % 700}\t{n % 3}\n" for n in range(1000))
        return LabeledTextFiles(put(tmp_path / "a.tsv", rows), **more)

    def test_what_is_held_out(self, tmp_path):
        """About a tenth each, disjoint, all of it together, and the same each time."""
        corpus = self.corpus(tmp_path)
        assert corpus.splits == ("train", "dev", "test")
        found = {split: list(corpus.read(split)) for split in corpus.splits}
        assert sum(map(len, found.values())) == 1000
        texts = {split: {record["text"] for record in some} for split, some in found.items()}
        assert not texts["train"] & (texts["dev"] | texts["test"])
        assert not texts["dev"] & texts["test"]
        assert 50 < len(found["dev"]) < 150
        assert 50 < len(found["test"]) < 150
        assert list(corpus.read("dev")) == found["dev"]
        number = next(n for n in range(1000) if f"text {n}" == found["dev"][0]["text"])
        assert location(corpus, "dev", 0).endswith(f"a.tsv:{number + 1}")
        assert "dev 10% of train, test 10% of train" in corpus.describe()

    def test_what_is_given_is_not_split_off(self, tmp_path):
        test = put(tmp_path / "test.tsv", "text 1\t0\n")
        corpus = self.corpus(tmp_path, test=test)
        assert list(corpus.read("test")) == [{"text": "text 1", "label": "0"}]
        assert len(list(corpus.read("train"))) + len(list(corpus.read("dev"))) == 1000
        both = self.corpus(tmp_path, dev=test, test=test)
        assert len(list(both.read("train"))) == 1000
        alone = self.corpus(tmp_path, held_out=0.0)
        assert alone.splits == ("train",)
        assert len(list(alone.read("train"))) == 1000

    def test_the_split_never_moves(self):
        """Results were measured on these."""
        shares = {"dev": 0.1, "test": 0.2}
        parts = [hash_split(f"text {n}", shares) for n in range(10_000)]
        assert abs(parts.count("dev") - 1000) < 100
        assert abs(parts.count("test") - 2000) < 130
        assert [n for n in range(30) if parts[n] == "dev"] == DEV

    def test_too_little(self, tmp_path):
        path = put(tmp_path / "a.tsv", "one\t1\n")
        corpus = LabeledTextFiles(path, held_out=0.01)
        assert len(list(corpus.read("train"))) == 1
        assert said(corpus.read("dev")) == (
            f"{path}: nothing of it falls to dev; give files for dev"
        )


DEV = [2, 3, 6, 18]


def test_formats_by_name(tmp_path):
    assert guess_format(["a.tsv.gz"]) == guess_format(["-"]) == "tsv"
    assert guess_format(["a.csv"]) == "csv"
    assert guess_format(["a.jsonl"]) == "jsonl"
    assert guess_format(["a", "b"]) == "parallel"
    assert guess_format([tmp_path]) == "folder"
    with pytest.raises(ValueError, match=r"a.xlsx: .xlsx tells no format"):
        guess_format(["a.xlsx"])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"columns": ["text", "gold"]}, "columns must name 'label' once, not "),
        ({"fields": {"label": "x"}}, "fields must name 'text' once, not"),
        ({"columns": ["text", "label"], "fields": {"text": "a", "label": "b"}}, "not both"),
        ({"format": "jsonl", "columns": ["text", "label"]}, "columns do not fit jsonl"),
        ({"format": "parallel", "fields": {"text": "a", "label": "b"}}, "fields do not fit"),
        ({"format": "parallel"}, "train: parallel needs 2 files, not 1"),
        ({"format": "folder"}, "a.tsv: there is no such folder"),
        ({"dev": "none.tsv"}, "none.tsv: there is no such file"),
        ({"held_out": 0.5}, "held_out must be at least 0 and less than 0.5, not 0.5"),
    ],
)
def test_wrong_arguments_are_found_at_once(tmp_path, more, words):
    path = put(tmp_path / "a.tsv", "a\tb\n")
    with pytest.raises(ValueError, match=words):
        LabeledTextFiles(path, **more)
