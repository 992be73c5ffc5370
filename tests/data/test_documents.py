"""Tests of plain text as files, lines and paragraphs, with the end held out."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.corpus import location
from regard.data.formats.documents import DocumentFiles

TEXT = "One.\nTwo.\n\n \nThree.\n\nFour.\nFive.\n"


def write_file(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read_texts(corpus, split="train"):
    return [record["text"] for record in corpus.read(split)]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "strange.name"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("unit", "expected", "second_location"),
    [
        ("file", [TEXT], ""),
        ("line", TEXT.split("\n")[:-1], ":2"),
        ("paragraph", ["One.\nTwo.", "Three.", "Four.\nFive."], ":5"),
    ],
)
def test_units(tmp_path, name, end, unit, expected, second_location):
    path = write_file(tmp_path / name, "\ufeff" + TEXT.replace("\n", end))
    corpus = DocumentFiles(path, unit=unit, held_out=0.0)
    assert read_texts(corpus) == expected
    if second_location:
        assert location(corpus, "train", 1) == f"{path}{second_location}"
    assert corpus.splits == ("train",)


def test_several_files_and_folders(tmp_path):
    write_file(tmp_path / "set" / "b.txt", "b")
    write_file(tmp_path / "set" / "deep" / "a.txt.gz", "a")
    write_file(tmp_path / "set" / "notes.md", "no")
    extra_file = write_file(tmp_path / "z", "z")
    corpus = DocumentFiles([extra_file, tmp_path / "set"], held_out=0.0)
    assert read_texts(corpus) == ["z", "b", "a"]
    assert " and 2 more" in corpus.describe()
    assert location(corpus, "train", 1).endswith("set/b.txt")


def test_the_last_characters_are_held_out(tmp_path):
    text = "".join(chr(97 + n % 26) for n in range(1000))
    corpus = DocumentFiles(write_file(tmp_path / "a.txt", text), held_out=0.1)
    assert read_texts(corpus) == [text[:800]]
    assert read_texts(corpus, "dev") == [text[800:900]]
    assert read_texts(corpus, "test") == [text[900:]]
    test_file = write_file(tmp_path / "b.txt", "other")
    corpus = DocumentFiles(tmp_path / "a.txt", test=test_file, held_out=0.1)
    assert read_texts(corpus) == [text[:900]]
    assert read_texts(corpus, "dev") == [text[900:]]
    assert read_texts(corpus, "test") == ["other"]


@settings(max_examples=25)
@given(
    st.lists(st.text("ab \n", min_size=1, max_size=30), min_size=1, max_size=4),
    st.sampled_from(["file", "line", "paragraph"]),
    st.sampled_from([0.05, 0.1, 0.3]),
)
def test_splits_partition_the_text(tmp_path_factory, files, unit, held_out):
    """The concatenated splits are the complete text, in order."""
    folder = tmp_path_factory.mktemp("any")
    paths = [write_file(folder / f"{n}.txt", text) for n, text in enumerate(files)]
    all_texts = read_texts(DocumentFiles(paths, unit=unit, held_out=0.0))
    corpus, split_texts = DocumentFiles(paths, unit=unit, held_out=held_out), []
    for split in corpus.splits:
        try:
            split_texts += read_texts(corpus, split)
        except ValueError as error:
            assert "too short to hold out" in str(error)  # noqa: PT017
    if unit == "file":
        assert "".join(split_texts) == "".join(all_texts)
    else:
        assert split_texts == all_texts


def test_error_messages(tmp_path):
    bad = write_file(tmp_path / "a.txt", b"fine\n\nna\xefve\n")
    for unit in ("file", "line", "paragraph"):
        with pytest.raises(ValueError, match=r"a.txt:3: byte 3 is 0xef, which is not UTF-8"):
            read_texts(DocumentFiles(bad, unit=unit, held_out=0.0))
    empty = write_file(tmp_path / "b.txt", "")
    with pytest.raises(ValueError, match=r"b.txt: no lines \(empty\)"):
        read_texts(DocumentFiles(empty, held_out=0.0))
    with pytest.raises(ValueError, match=r"none.txt: there is no such file"):
        DocumentFiles(tmp_path / "none.txt")
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match=r"bare: no .txt or .txt.gz file; add one"):
        DocumentFiles(tmp_path / "bare")
    with pytest.raises(ValueError, match="no files; give at least one"):
        DocumentFiles([])
    short = write_file(tmp_path / "c.txt", "a")
    with pytest.raises(ValueError, match=r"c.txt: too short to hold out train; give files for"):
        read_texts(DocumentFiles(short))
    damaged = tmp_path / "d.txt.gz"
    damaged.write_bytes(gzip.compress(b"text " * 1000)[:-20])
    with pytest.raises(ValueError, match="damaged gzip file"):
        read_texts(DocumentFiles(damaged, held_out=0.0))


def test_bad_unit(tmp_path, unchecked):
    with pytest.raises(ValueError, match="unit must be one of file, line, paragraph, not 'lines'"):
        DocumentFiles(write_file(tmp_path / "a.txt", "a"), unit="lines")
