"""A run scores the records of its splits completely."""

import json

import pytest

import regard
from regard.data.build import build_corpus

RICH_RECORDS = {  # corpora whose records hold more than the files of a user
    "caption": {
        "data": {"kind": "digits", "size": 8, "held_out": 4, "side": 16},
        "image": {"size": (16, 16)},
        "model": {"kind": "show_attend", "dim": 4, "image_dim": 4}
        | {"image_layers": 1, "pooling_layers": 1},
        "decode": {"kind": "greedy", "max_length": 2},
    },
    "chat": {
        "data": {"kind": "dialogues", "train": "talk.jsonl", "test": "talk.jsonl"}
        | {"database": "places.json", "slot_columns": ["food"], "held_out": 0.0},
        "text": {"kind": "words"},
        "model": {"kind": "gpt2", "dim": 4, "heads": 1, "layers": 1, "max_positions": 32},
        "train": {"max_tokens": 32},
        "decode": {"kind": "greedy", "max_length": 2},
    },
}


@pytest.mark.parametrize(("task", "metric"), [("caption", "pointing"), ("chat", "joint_goal")])
def test_records_of_a_split_are_scored_completely(task, metric, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exchange = {"user": "thai please", "wishes": {"food": "thai"}, "reply": "Copper Pot !"}
    (tmp_path / "talk.jsonl").write_text(json.dumps({"exchanges": [exchange]}) + "\n")
    (tmp_path / "places.json").write_text(json.dumps([{"name": "Copper Pot", "food": "thai"}]))
    settings = regard.resolve_settings({"task": task, **RICH_RECORDS[task]})
    run = regard.Run.create(settings, build_corpus(settings.data))
    scores = run.score("test")
    assert metric in scores
    assert run.score(run.read_split("test")) == scores
