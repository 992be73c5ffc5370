"""Tests of tagged sentences from files: formats, splits, and error messages."""

import gzip
import json

import pytest

from regard.config.data.texts import PublicTagsDataConfig
from regard.data.build import build_corpus
from regard.data.corpus import location
from regard.data.formats.tagged_texts import TaggedTextFiles, record_from_json

RECORDS = [
    {"text": "Ada met Bob Ray .", "tags": "B-per O B-per I-per O"},
    {"text": "in Rome", "tags": "O B-loc"},
]
CONLL = "".join(
    "".join(f"{w}\t{t}\n" for w, t in zip(r["text"].split(), r["tags"].split(), strict=True)) + "\n"
    for r in RECORDS
)


def write_file(path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read_all(path, **options):
    return list(TaggedTextFiles(path, held_out=0.0, **options).read("train"))


def error_message(path, **options) -> str:
    with pytest.raises(ValueError) as caught:
        read_all(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestFormats:
    @pytest.mark.parametrize("name", ["a.conll", "a.conll.gz", "a.txt"])
    def test_conll(self, tmp_path, name):
        assert read_all(write_file(tmp_path / name, CONLL)) == RECORDS
        assert (
            read_all(write_file(tmp_path / name, CONLL.rstrip("\n"))) == RECORDS
        )  # no blank line at the end

    def test_conll_2003(self, tmp_path):
        """CoNLL-2003 has four columns, the tag last, in IOB1."""
        text = "-DOCSTART- -X- O O\n\nAda NNP I-NP I-PER\nBob NNP I-NP B-PER\nran VB O O\n"
        [record] = read_all(write_file(tmp_path / "a.conll", text), scheme="iob1")
        assert record == {"text": "Ada Bob ran", "tags": "B-PER B-PER O"}
        [record] = read_all(tmp_path / "a.conll", columns=(0, 2), scheme="iob1")
        assert record["tags"] == "B-NP I-NP O"

    def test_bioes(self, tmp_path):
        text = "Ada\tS-per\nBob\tB-per\nRay\tE-per\n"
        [record] = read_all(write_file(tmp_path / "a.conll", text), scheme="bioes")
        assert record["tags"] == "B-per B-per I-per"

    def test_json_lines(self, tmp_path):
        rows = [
            {"tokens": ["in", "Rome"], "tags": ["O", "B-loc"]},
            {"text": "Fly to New York!", "spans": [{"start": 7, "end": 15, "label": "city"}]},
            {
                "text": "hi Ada",
                "intent": "greet",
                "entities": [{"start": 3, "end": 6, "entity": "who", "value": "ada"}],
            },
        ]
        path = write_file(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        assert read_all(path) == [
            RECORDS[1],
            {"text": "Fly to New York !", "tags": "O O B-city I-city O"},
            {"text": "hi Ada", "tags": "O B-who", "label": "greet"},
        ]

    def test_folder(self, tmp_path):
        write_file(tmp_path / "seq.in", "".join(r["text"] + " \n" for r in RECORDS))
        write_file(tmp_path / "seq.out", "".join(r["tags"] + "\n" for r in RECORDS))
        assert read_all(tmp_path) == RECORDS
        write_file(tmp_path / "label", "meet\ngo\n")
        assert [record["label"] for record in read_all(tmp_path)] == ["meet", "go"]

    def test_splits(self, tmp_path):
        path = write_file(tmp_path / "a.conll", "".join(f"word{n}\tO\n\n" for n in range(200)))
        corpus = TaggedTextFiles(path)
        texts_by_split = [{r["text"] for r in corpus.read(split)} for split in corpus.splits]
        assert sum(map(len, texts_by_split)) == 200
        assert all(len(part) > 5 for part in texts_by_split)
        assert location(corpus, "train", 0).startswith(f"{path}:")


class TestErrorMessages:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("Ada\tB-per\nmet\n", ":2: 1 columns, but 2 before"),
            ("Ada\nmet\n", ":1: 1 columns, too few for word and tag"),
            ("\tO\n", ":1: '' is not one word"),
            ("Ada\tI-per\n", ":1: word 1 ('Ada'): I-per after the start is not bio"),
            ("a\tO\n\nb\tO\nc\tX-per\n", ":3: word 2 ('c'): 'X-per' is not one of B-X, I-X"),
        ],
    )
    def test_conll(self, tmp_path, text, message):
        path = write_file(tmp_path / "a.conll", text)
        assert error_message(path).startswith(f"{path}{message}")

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("{", "not JSON"),
            ("[]", "not an object"),
            ('{"a": 1}', "neither tokens with tags nor a text"),
            ('{"tokens": ["a"], "tags": []}', "tags must be a list as long as tokens, 1"),
            ('{"tokens": ["a b"], "tags": ["O"]}', "must be words without spaces"),
            ('{"text": "New York", "spans": 3}', "spans must be a list"),
            (
                '{"text": "New York", "spans": [{"start": 1, "end": 3, "label": "x"}]}',
                "span 1 to 3 ('ew', 'x') must begin and end at words",
            ),
            (
                (
                    '{"text": "a", "spans": [{"start": 0, "end": 1, "label": "x"},'
                    '{"start": 0, "end": 1, "label": "y"}]}'
                ),
                "overlaps",
            ),
        ],
    )
    def test_json(self, tmp_path, row, message):
        path = write_file(tmp_path / "a.jsonl", f'{{"tokens": ["a"], "tags": ["O"]}}\n{row}\n')
        actual = error_message(path)
        assert actual.startswith(f"{path}:2: ")
        assert message in actual

    def test_folders(self, tmp_path):
        write_file(tmp_path / "seq.in", "a b\nc\n")
        assert "no file seq.out; add it" in error_message(tmp_path)
        write_file(tmp_path / "seq.out", "O\n")
        assert "different length (seq.in 2, seq.out 1 lines)" in error_message(tmp_path)
        write_file(tmp_path / "seq.out", "O O\nO O\n")
        assert "seq.out:2: 2 tags for 1 words" in error_message(tmp_path)
        write_file(tmp_path / "seq.in", "a b\n \n")
        write_file(tmp_path / "seq.out", "O O\n \n")
        assert "seq.out:2: a sentence without words" in error_message(tmp_path)

    def test_paths(self, tmp_path):
        assert "cannot infer the format from no suffix" in error_message(
            write_file(tmp_path / "words", "a\tO\n")
        )
        assert "there is no such file" in error_message(tmp_path / "gone.conll")
        assert "there is no such folder" in error_message(tmp_path / "gone", format="folder")


def test_label_is_a_string():
    assert record_from_json({"tokens": ["a"], "tags": ["O"], "label": 3}, "here")["label"] == "3"


def test_public_dataset(tmp_path, monkeypatch):
    """A file of a mirror with a wrong checksum is refused."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    write_file(tmp_path / "mirror" / "ner" / "wnut17" / "wnut17train.conll", CONLL)
    with pytest.raises(ValueError, match=r"wnut17train\.conll"):
        list(build_corpus(PublicTagsDataConfig(name="wnut17")).read("train"))
    assert "CC BY 4.0" in build_corpus(PublicTagsDataConfig(name="wnut17")).describe()
