"""Tests of dialogues from files and public datasets."""

import gzip
import json

import pytest

from regard.data.formats.dialogues import DialogueFiles
from regard.data.public.dialogues import (
    DIALOGUE_DATASETS,
    PublicDialogues,
    camrest_records,
    woz_records,
)


def test_text_files(tmp_path):
    (tmp_path / "a.txt").write_text("hi\n hello  there \nbye\n\n\nyes?\nno\n")
    corpus = DialogueFiles(tmp_path / "a.txt", held_out=0.0)
    records = list(corpus.read("train"))
    assert [record["turns"] for record in records] == [["hi", "hello there", "bye"], ["yes?", "no"]]
    assert records[0]["text"] == "hi\nhello there\nbye"
    assert corpus.location("train", 1) == f"{tmp_path / 'a.txt'}:6"
    assert not corpus.database


EXCHANGE = {"user": "thai, please", "wishes": {"food": "thai"}, "reply": "Pot is thai."}


def test_exchanges_with_a_database(tmp_path):
    (tmp_path / "places.csv").write_text("name,food\nPot,thai\n")
    line = {"exchanges": [EXCHANGE], "goal": {"food": "thai"}}
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    database = str(tmp_path / "places.csv")
    corpus = DialogueFiles(
        tmp_path / "a.jsonl", database=database, slot_columns=["food"], held_out=0.0
    )
    [record] = corpus.read("train")
    assert record["turns"] == ["thai, please", "Pot is thai."]
    assert record["wishes"] == [{"food": "thai"}]
    assert record["goal"] == {"food": "thai"}
    assert corpus.database.rows == [{"name": "Pot", "food": "thai"}]
    assert "database of 1 rows" in corpus.describe()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "a.jsonl:1: must be an object with turns or exchanges"),
        ("{", "a.jsonl:1: not JSON"),
        ('{"turns": "hi"}', "a.jsonl:1: turns must be a list of texts"),
        ('{"turns": ["hi"]}', "a.jsonl:1: a dialogue needs at least two turns"),
        ('{"turns": ["hi", " "]}', "a.jsonl:1: a dialogue needs at least two turns"),
        ('{"turns": ["hi", "ho"]}', "a.jsonl:1: no exchanges with wishes"),
        ('{"exchanges": [{"user": "hi"}]}', "a.jsonl:1: exchange 1: reply must be a text"),
        ('{"exchanges": ["hi"]}', "a.jsonl:1: exchange 1: must be an object with user, wishes"),
        (
            json.dumps({"exchanges": [{**EXCHANGE, "wishes": {"size": "big"}}]}),
            "a.jsonl:1: unknown slot 'size' in wishes; data.slot_columns has food",
        ),
        (
            json.dumps({"exchanges": [{**EXCHANGE, "wishes": ["thai"]}]}),
            "a.jsonl:1: exchange 1: wishes must be an object of texts",
        ),
    ],
)
def test_bad_lines(tmp_path, line, message):
    (tmp_path / "places.csv").write_text("name,food\nPot,thai\n")
    (tmp_path / "a.jsonl").write_text(line + "\n")
    database = str(tmp_path / "places.csv")
    corpus = DialogueFiles(
        tmp_path / "a.jsonl", database=database, slot_columns=["food"], held_out=0.0
    )
    with pytest.raises(ValueError, match=r"a\.jsonl:1: ") as error:
        list(corpus.read("train"))
    assert message in str(error.value)


def test_unknown_suffix(tmp_path):
    (tmp_path / "a.doc").write_text("hi\nho\n")
    with pytest.raises(ValueError, match=r"cannot infer the format from \.doc"):
        DialogueFiles(tmp_path / "a.doc")


def test_camrest_records():
    """Train has three of five dialogues; "dontcare" is "any"; incomplete ones are dropped."""
    slots = [{"slots": [["food", "dontcare"]]}, {"slots": [["slot", "phone"], ["area", "east"]]}]
    exchange = {"usr": {"transcript": "east", "slu": slots}, "sys": {"sent": "Here."}}
    complete = {"dial": [exchange], "goal": {"constraints": [["area", "east"]]}}
    incomplete = {"dial": [{**exchange, "sys": {"sent": ""}}], "goal": {"constraints": []}}
    records = list(
        camrest_records([complete, incomplete, complete, complete, complete, complete], "train")
    )
    assert len(records) == 3
    assert records[0]["wishes"] == [{"food": "any", "area": "east"}]
    assert records[0]["goal"] == {"area": "east"}
    assert len(list(camrest_records([complete] * 5, "dev"))) == 1


def test_woz_records():
    turns = [
        {"system_transcript": "", "transcript": "hi"},
        {"system_transcript": "hello", "transcript": "bye"},
    ]
    [record] = woz_records([{"dialogue": turns}], "train")
    assert record["turns"] == ["hi", "hello", "bye"]


def test_public_dataset(tmp_path, monkeypatch):
    """Files of a mirror with wrong checksums are refused."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    for source in DIALOGUE_DATASETS["woz2"].files.values():
        path = tmp_path / "mirror" / source.mirror_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"[]"))
    corpus = PublicDialogues("woz2")
    with pytest.raises(ValueError, match="woz_train_en"):
        list(corpus.read("train"))
    assert "Apache" in corpus.describe()
    with pytest.raises(ValueError, match="did you mean 'woz2'"):
        PublicDialogues("woz")
