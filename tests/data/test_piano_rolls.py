"""Piano rolls from files: every format, the splits inside a file, and what is wrong where."""

import gzip
import json

import pytest

from regard.config.data.notes import PublicMusicDataConfig, RollsDataConfig
from regard.data.build import build_corpus
from regard.data.formats.piano_rolls import PianoRollFiles, parse_piece

PIECES = [[[60, 64], []], [[67, 60, 67]], [[21], [108]]]


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def texts(corpus, split="train"):
    return [json.loads(record["text"]) for record in corpus.read(split)]


def said(path, split="train"):
    with pytest.raises(ValueError) as caught:
        list(PianoRollFiles(path, held_out=0.0).read(split))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_list_and_lines_say_the_same(tmp_path):
    want = [[[60, 64], []], [[60, 67]], [[21], [108]]]  # in order, each once
    whole = put(tmp_path / "a.json", json.dumps(PIECES))
    lines = put(tmp_path / "a.jsonl", "\n".join(map(json.dumps, PIECES)) + "\n")
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    for path in (whole, lines, packed):
        assert texts(PianoRollFiles(path, held_out=0.0)) == want
    corpus = PianoRollFiles([whole, lines], held_out=0.0)
    assert texts(corpus) == want + want
    assert corpus.location("train", 4) == f"{lines}:2"
    assert corpus.location("train", 1) == f"{whole}: piece 2"


def test_splits_inside_a_file(tmp_path):
    parts = zip(("train", "valid", "test"), PIECES, strict=True)
    path = put(tmp_path / "a.json", json.dumps({name: [piece] for name, piece in parts}))
    corpus = build_corpus(RollsDataConfig(train=str(path)))
    assert corpus.splits == ("train", "dev", "test")
    assert texts(corpus, "dev") == [[[60, 67]]]
    assert texts(corpus, "test") == [[[21], [108]]]
    assert corpus.location("test", 0) == f"{path}: test, piece 1"
    other = put(tmp_path / "b.jsonl", "[[50]]\n")
    assert texts(PianoRollFiles(path, test=other), "test") == [[[50]]]
    path = put(tmp_path / "c.json", '{"valid": [], "a": []}')
    assert said(path) == f"{path}: has no 'train'; it has valid, a"


def test_what_is_held_out_is_fixed_and_in_one_split(tmp_path):
    pieces = [[[30 + n % 40], [40 + n // 40]] for n in range(400)]
    path = put(tmp_path / "a.jsonl", "".join(f"{json.dumps(p)}\n" for p in [*pieces, *pieces]))
    corpus = PianoRollFiles(path, held_out=0.2)
    found = {split: [str(t) for t in texts(corpus, split)] for split in corpus.splits}
    assert 50 < len(set(found["dev"])) < 110
    assert not set(found["dev"]) & set(found["train"])
    assert not set(found["dev"]) & set(found["test"])
    assert sum(map(len, found.values())) == 800


class TestWhatIsWrong:
    def test_pitches(self, tmp_path):
        path = put(tmp_path / "a.jsonl", "[[60]]\n[[60], [20]]\n")
        assert said(path) == (
            f"{path}:2, step 2: pitch 20 is not a key of the piano, from 21 to 108; move the piece"
        )
        for wrong in ("109", "60.0", '"60"', "true", "null", "[60]"):
            assert "step 1: pitch" in said(put(tmp_path / "a.jsonl", f"[[{wrong}]]\n"))

    def test_shapes(self, tmp_path):
        assert "a.jsonl:1: a piece without steps" in said(put(tmp_path / "a.jsonl", "[]\n"))
        assert "a.jsonl:1, step 1: must be a list" in said(put(tmp_path / "a.jsonl", "[60]\n"))
        assert "a.jsonl:1: a piece must be a list" in said(put(tmp_path / "a.jsonl", "60\n"))
        assert "must be a list of pieces" in said(put(tmp_path / "a.json", "60"))
        path = put(tmp_path / "a.json", '{"train": [[[60]], []]}')
        assert said(path) == f"{path}: train, piece 2: a piece without steps; take it out"

    def test_json(self, tmp_path):
        path = put(tmp_path / "a.json", "[\n[[60]],\n[[61]\n")
        assert said(path).startswith(f"{path}:4: not JSON (")
        path = put(tmp_path / "a.jsonl", "[[60]]\n[[60]\n")
        assert said(path).startswith(f"{path}:2: not JSON (")
        path = put(tmp_path / "b.json", "[[60]]\n[[60]]\n")
        assert "a file with a piece a line ends in .jsonl" in said(path)

    def test_names(self, tmp_path):
        assert "there is no such file" in said(tmp_path / "gone.json")
        assert "let it end in .json, .jsonl" in said(put(tmp_path / "a.txt", "[]"))
        assert "empty, no line to read" in said(put(tmp_path / "a.json", ""))

    def test_a_beginning(self):
        assert parse_piece("[[64, 60], []]", "here") == [(60, 64), ()]
        with pytest.raises(ValueError, match=r"^here: not JSON \(.*a piece is as \[\[60, 64\]"):
            parse_piece("C E G", "here")


def test_chorales_from_a_mirror(tmp_path, monkeypatch):
    """A file that is not what it should be is not used."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    place = tmp_path / "mirror" / "music" / "jsb_chorales" / "jsb-chorales-quarter.json.gz"
    place.parent.mkdir(parents=True)
    place.write_bytes(gzip.compress(b'{"train": [[[60]]]}'))
    with pytest.raises(ValueError, match=r"jsb-chorales-quarter\.json\.gz: SHA-256"):
        list(build_corpus(PublicMusicDataConfig(name="jsb_chorales")).read("train"))
    assert "public domain" in build_corpus(PublicMusicDataConfig(name="jsb_chorales")).describe()
