"""Plain text: whole files, lines, paragraphs; what is held out is the end."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.corpus import location
from regard.data.formats.documents import DocumentFiles

TEXT = "One.\nTwo.\n\n \nThree.\n\nFour.\nFive.\n"


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def texts(corpus, split="train"):
    return [record["text"] for record in corpus.read(split)]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "strange.name"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("unit", "wanted", "second"),
    [
        ("file", [TEXT], ""),
        ("line", TEXT.split("\n")[:-1], ":2"),
        ("paragraph", ["One.\nTwo.", "Three.", "Four.\nFive."], ":5"),
    ],
)
def test_units(tmp_path, name, end, unit, wanted, second):
    path = put(tmp_path / name, "\ufeff" + TEXT.replace("\n", end))
    corpus = DocumentFiles(path, unit=unit, held_out=0.0)
    assert texts(corpus) == wanted
    if second:
        assert location(corpus, "train", 1) == f"{path}{second}"
    assert corpus.splits == ("train",)


def test_several_files_and_folders(tmp_path):
    put(tmp_path / "set" / "b.txt", "b")
    put(tmp_path / "set" / "deep" / "a.txt.gz", "a")
    put(tmp_path / "set" / "notes.md", "no")
    last = put(tmp_path / "z", "z")
    corpus = DocumentFiles([last, tmp_path / "set"], held_out=0.0)
    assert texts(corpus) == ["z", "b", "a"]
    assert " and 2 more" in corpus.describe()
    assert location(corpus, "train", 1).endswith("set/b.txt")


def test_the_end_is_held_out_to_the_character(tmp_path):
    text = "".join(chr(97 + n % 26) for n in range(1000))
    corpus = DocumentFiles(put(tmp_path / "a.txt", text), held_out=0.1)
    assert texts(corpus) == [text[:800]]
    assert texts(corpus, "dev") == [text[800:900]]
    assert texts(corpus, "test") == [text[900:]]
    other = put(tmp_path / "b.txt", "other")
    corpus = DocumentFiles(tmp_path / "a.txt", test=other, held_out=0.1)
    assert texts(corpus) == [text[:900]]
    assert texts(corpus, "dev") == [text[900:]]
    assert texts(corpus, "test") == ["other"]


@settings(max_examples=25)
@given(
    st.lists(st.text("ab \n", min_size=1, max_size=30), min_size=1, max_size=4),
    st.sampled_from(["file", "line", "paragraph"]),
    st.sampled_from([0.05, 0.1, 0.3]),
)
def test_nothing_is_lost_and_nothing_is_twice(tmp_path_factory, files, unit, held_out):
    """All splits one after another are the whole, in its order."""
    folder = tmp_path_factory.mktemp("any")
    paths = [put(folder / f"{n}.txt", text) for n, text in enumerate(files)]
    whole = texts(DocumentFiles(paths, unit=unit, held_out=0.0))
    corpus, found = DocumentFiles(paths, unit=unit, held_out=held_out), []
    for split in corpus.splits:
        try:
            found += texts(corpus, split)
        except ValueError as error:
            assert "too short to hold out" in str(error)  # noqa: PT017
    if unit == "file":
        assert "".join(found) == "".join(whole)
    else:
        assert found == whole


def test_what_is_wrong(tmp_path):
    bad = put(tmp_path / "a.txt", b"fine\n\nna\xefve\n")
    for unit in ("file", "line", "paragraph"):
        with pytest.raises(ValueError, match=r"a.txt:3: byte 3 is 0xef, which is not UTF-8"):
            texts(DocumentFiles(bad, unit=unit, held_out=0.0))
    empty = put(tmp_path / "b.txt", "")
    with pytest.raises(ValueError, match=r"b.txt: empty, no line to read"):
        texts(DocumentFiles(empty, held_out=0.0))
    with pytest.raises(ValueError, match=r"none.txt: there is no such file"):
        DocumentFiles(tmp_path / "none.txt")
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match=r"bare: no .txt or .txt.gz file in it"):
        DocumentFiles(tmp_path / "bare")
    with pytest.raises(ValueError, match="files are missing"):
        DocumentFiles([])
    short = put(tmp_path / "c.txt", "a")
    with pytest.raises(ValueError, match=r"c.txt: too short to hold out train; give files for"):
        texts(DocumentFiles(short))
    damaged = tmp_path / "d.txt.gz"
    damaged.write_bytes(gzip.compress(b"text " * 1000)[:-20])
    with pytest.raises(ValueError, match="damaged gzip file"):
        texts(DocumentFiles(damaged, held_out=0.0))


def test_a_wrong_unit(tmp_path, unchecked):
    with pytest.raises(ValueError, match="unit must be one of file, line, paragraph, not 'lines'"):
        DocumentFiles(put(tmp_path / "a.txt", "a"), unit="lines")
