"""Tests of tunes from ABC files: their normal form, splits and error messages."""

import pytest

from regard.config.data.notes import AbcDataConfig, PublicMusicDataConfig
from regard.data.build import build_corpus
from regard.data.formats.abc_files import AbcFiles

BOOK = """% a book of tunes

X: 1
T: One
S:me, from you
% a remark
M: 4/4
K:G
G2A2 B2c2|  % the first bar
K:D
d8|]

X:2
T:Two
Z:somebody
K:Am
A8|]
"""


def write_file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def error_message(path, **options):
    with pytest.raises(ValueError) as caught:
        list(AbcFiles(path, held_out=0.0, **options).read("train"))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_normal_form(tmp_path):
    path = write_file(tmp_path / "a.abc", BOOK)
    corpus = build_corpus(AbcDataConfig(train=str(path), held_out=0.0))
    first_text, second_text = (record["text"] for record in corpus.read("train"))
    assert first_text == "T:One\nM:4/4\nK:G\nG2A2 B2c2|\nK:D\nd8|]"
    assert second_text == "T:Two\nK:Am\nA8|]"
    assert corpus.location("train", 0) == f"{path}:3"
    assert corpus.location("train", 1) == f"{path}:13"
    assert corpus.splits == ("train",)
    [first, _] = AbcFiles(path, header_fields="KM", held_out=0.0).read("train")
    assert first["text"] == "M:4/4\nK:G\nG2A2 B2c2|\nK:D\nd8|]"


def test_held_out_splits(tmp_path):
    book = "".join(f"X:{n}\nT:{n}\nK:C\nC8|\n\n" for n in range(300))
    corpus = AbcFiles(write_file(tmp_path / "a.abc", book))
    texts_by_split = {
        split: [record["text"] for record in corpus.read(split)] for split in corpus.splits
    }
    assert sum(map(len, texts_by_split.values())) == 300
    assert 15 < len(texts_by_split["dev"]) < 50
    assert 15 < len(texts_by_split["test"]) < 50


def test_error_messages(tmp_path):
    def message_for(text):
        return error_message(write_file(tmp_path / "a.abc", text)).removeprefix(
            str(tmp_path / "a.abc")
        )

    assert (
        message_for("X:1\nT:a\nABC|\n") == ":1: no K: before the notes of this tune; give its key"
    )
    assert message_for("X:1\nK:C\nC|\n\nX:2\nT:b\n") == ":5: no K: in this tune; give its key"
    assert message_for("X:1\nK:C\n\n") == ":1: no notes after the K: of this tune; remove it"
    assert (
        message_for("T:a\nK:C\nABC|\n") == ":2: a key, but no X: before; begin each tune with X:1"
    )
    assert message_for("hello\n") == ": no tune; begin each with a line X:1"
    assert message_for("") == ": no lines (empty)"
    assert "there is no such file" in error_message(tmp_path / "gone.abc")
    assert "must contain K" in error_message(tmp_path / "a.abc", header_fields="T")


def test_tunes_from_a_mirror(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    write_file(tmp_path / "mirror" / "music" / "nottingham_abc" / "ashover.abc", BOOK)
    corpus = build_corpus(PublicMusicDataConfig(name="nottingham"))
    with pytest.raises(ValueError, match=r"ashover\.abc: SHA-256"):
        list(corpus.read("train"))
    assert corpus.splits == ("train", "dev", "test")
    assert "GPL-3.0" in corpus.describe()
