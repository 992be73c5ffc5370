"""Tests of piano rolls from files: formats, splits inside a file, and error messages."""

import gzip
import json

import pytest

from regard.config.data.notes import PublicMusicDataConfig, RollsDataConfig
from regard.data.build import build_corpus
from regard.data.formats.piano_rolls import PianoRollFiles, parse_piece

PIECES = [[[60, 64], []], [[67, 60, 67]], [[21], [108]]]


def write_file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read_pieces(corpus, split="train"):
    return [json.loads(record["text"]) for record in corpus.read(split)]


def error_message(path, split="train"):
    with pytest.raises(ValueError) as caught:
        list(PianoRollFiles(path, held_out=0.0).read(split))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_json_and_json_lines_agree(tmp_path):
    expected = [[[60, 64], []], [[60, 67]], [[21], [108]]]  # pitches sorted, without duplicates
    json_path = write_file(tmp_path / "a.json", json.dumps(PIECES))
    lines_path = write_file(tmp_path / "a.jsonl", "\n".join(map(json.dumps, PIECES)) + "\n")
    gzipped_path = tmp_path / "b.json.gz"
    gzipped_path.write_bytes(gzip.compress(json_path.read_bytes()))
    for path in (json_path, lines_path, gzipped_path):
        assert read_pieces(PianoRollFiles(path, held_out=0.0)) == expected
    corpus = PianoRollFiles([json_path, lines_path], held_out=0.0)
    assert read_pieces(corpus) == expected + expected
    assert corpus.location("train", 4) == f"{lines_path}:2"
    assert corpus.location("train", 1) == f"{json_path}: piece 2"


def test_splits_inside_a_file(tmp_path):
    parts = zip(("train", "valid", "test"), PIECES, strict=True)
    path = write_file(tmp_path / "a.json", json.dumps({name: [piece] for name, piece in parts}))
    corpus = build_corpus(RollsDataConfig(train=str(path)))
    assert corpus.splits == ("train", "dev", "test")
    assert read_pieces(corpus, "dev") == [[[60, 67]]]
    assert read_pieces(corpus, "test") == [[[21], [108]]]
    assert corpus.location("test", 0) == f"{path}: test, piece 1"
    other = write_file(tmp_path / "b.jsonl", "[[50]]\n")
    assert read_pieces(PianoRollFiles(path, test=other), "test") == [[[50]]]
    path = write_file(tmp_path / "c.json", '{"valid": [], "a": []}')
    assert error_message(path) == f"{path}: no field 'train'; it has valid, a"


def test_equal_pieces_are_in_one_split(tmp_path):
    pieces = [[[30 + n % 40], [40 + n // 40]] for n in range(400)]
    path = write_file(
        tmp_path / "a.jsonl", "".join(f"{json.dumps(p)}\n" for p in [*pieces, *pieces])
    )
    corpus = PianoRollFiles(path, held_out=0.2)
    pieces_by_split = {
        split: [str(t) for t in read_pieces(corpus, split)] for split in corpus.splits
    }
    assert 50 < len(set(pieces_by_split["dev"])) < 110
    assert not set(pieces_by_split["dev"]) & set(pieces_by_split["train"])
    assert not set(pieces_by_split["dev"]) & set(pieces_by_split["test"])
    assert sum(map(len, pieces_by_split.values())) == 800


class TestErrorMessages:
    def test_pitches(self, tmp_path):
        path = write_file(tmp_path / "a.jsonl", "[[60]]\n[[60], [20]]\n")
        assert error_message(path) == (
            f"{path}:2, step 2: pitch 20 is not from 21 to 108, the range of a piano; "
            "transpose the piece"
        )
        for wrong in ("109", "60.0", '"60"', "true", "null", "[60]"):
            assert "step 1: pitch" in error_message(
                write_file(tmp_path / "a.jsonl", f"[[{wrong}]]\n")
            )

    def test_shapes(self, tmp_path):
        assert "a.jsonl:1: a piece without steps" in error_message(
            write_file(tmp_path / "a.jsonl", "[]\n")
        )
        assert "a.jsonl:1, step 1: must be a list" in error_message(
            write_file(tmp_path / "a.jsonl", "[60]\n")
        )
        assert "a.jsonl:1: a piece must be a list" in error_message(
            write_file(tmp_path / "a.jsonl", "60\n")
        )
        assert "must be a list of pieces" in error_message(write_file(tmp_path / "a.json", "60"))
        path = write_file(tmp_path / "a.json", '{"train": [[[60]], []]}')
        assert error_message(path) == f"{path}: train, piece 2: a piece without steps; remove it"

    def test_json(self, tmp_path):
        path = write_file(tmp_path / "a.json", "[\n[[60]],\n[[61]\n")
        assert error_message(path).startswith(f"{path}:4: not JSON (")
        path = write_file(tmp_path / "a.jsonl", "[[60]]\n[[60]\n")
        assert error_message(path).startswith(f"{path}:2: not JSON (")
        path = write_file(tmp_path / "b.json", "[[60]]\n[[60]]\n")
        assert "name a file with one piece a line .jsonl" in error_message(path)

    def test_paths(self, tmp_path):
        assert "there is no such file" in error_message(tmp_path / "gone.json")
        assert "unknown suffix; use one of .json, .jsonl" in error_message(
            write_file(tmp_path / "a.txt", "[]")
        )
        assert "no lines (empty)" in error_message(write_file(tmp_path / "a.json", ""))

    def test_parse_piece(self):
        assert parse_piece("[[64, 60], []]", "here") == [(60, 64), ()]
        with pytest.raises(ValueError, match=r"^here: not JSON \(.*write a piece as \[\[60, 64\]"):
            parse_piece("C E G", "here")


def test_chorales_from_a_mirror(tmp_path, monkeypatch):
    """A file of a mirror with a wrong checksum is refused."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    path = tmp_path / "mirror" / "music" / "jsb_chorales" / "jsb-chorales-quarter.json.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(b'{"train": [[[60]]]}'))
    with pytest.raises(ValueError, match=r"jsb-chorales-quarter\.json\.gz: SHA-256"):
        list(build_corpus(PublicMusicDataConfig(name="jsb_chorales")).read("train"))
    assert "public domain" in build_corpus(PublicMusicDataConfig(name="jsb_chorales")).describe()
