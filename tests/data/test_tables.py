"""Rows of TSV and CSV: headers, blank lines, rows to skip."""

import pytest

from regard.data.formats.labeled_texts import LabeledTextFiles
from regard.data.formats.text_pairs import TextPairFiles
from regard.errors import InputError

PAIRS = [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}]


def corpus(folder, name, text, files=TextPairFiles, **options):
    path = folder / name
    path.write_text(text)
    return files(path, held_out=0.0, **options)


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n\n\n"])
def test_blank_lines_at_the_end_are_no_error(tmp_path, end):
    assert list(corpus(tmp_path, "x.tsv", f"a\tb\nc\td{end}").read("train")) == PAIRS


def test_blank_lines_inside_are_named(tmp_path):
    with pytest.raises(
        InputError, match=r"x\.tsv:2: the line is blank; remove it, or .*--skip-bad"
    ):
        list(corpus(tmp_path, "x.tsv", "a\tb\n\nc\td\n").read("train"))


def test_bad_rows_are_skipped_and_counted(tmp_path):
    pairs = corpus(tmp_path, "x.tsv", "a\tb\n\nthree\tcells\there\nc\td\n", skip_bad=True)
    for _ in range(2):
        assert list(pairs.read("train")) == PAIRS
    assert "2 rows skipped (first: " in pairs.describe()
    assert pairs.location("train", 1).endswith("x.tsv:4")
    lines = corpus(tmp_path, "x.jsonl", '{"source": "a", "target": "b"}\nno\n', skip_bad=True)
    assert list(lines.read("train")) == PAIRS[:1]
    assert "1 row skipped" in lines.describe()


def test_csv_of_pairs_with_a_header_in_any_order(tmp_path):
    text = 'Target,id,Source\n"b",1,a\nd,2,c\n'
    pairs = corpus(tmp_path, "x.csv", text)
    assert list(pairs.read("train")) == PAIRS
    assert pairs.location("train", 0).endswith("x.csv:2")
    assert list(corpus(tmp_path, "y.csv", "a,b\nc,d\n").read("train")) == PAIRS


def test_a_header_of_labeled_texts_is_recognized(tmp_path):
    labeled = corpus(tmp_path, "x.tsv", "label\ttext\ngood\tfine\n\n", LabeledTextFiles)
    assert list(labeled.read("train")) == [{"text": "fine", "label": "good"}]


def test_the_encoding_is_guessed(tmp_path):
    path = tmp_path / "x.tsv"
    text = "Привет, как дела сегодня утром\tХорошо, спасибо большое вам\n" * 5  # noqa: RUF001
    path.write_bytes(text.encode("cp1251"))
    with pytest.raises(InputError, match=r"x\.tsv:1: byte 1 is 0x.*iconv -f CP1251 -t UTF-8"):
        list(TextPairFiles(path).read("train"))
