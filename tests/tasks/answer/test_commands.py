"""The verbs on questions, as a user would call them."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli.check import check
from regard.cli.init import init
from regard.cli.look import look
from regard.cli.predict import predict
from regard.cli.score import score
from regard.explain.comparison import check_models
from regard.tasks.load import load_settings
from regard.training.trainer import Trainer

CONFIG = """
task = "answer"
data = { kind = "questions", train = "q.jsonl", dev = "q.jsonl", test = "q.jsonl" }
model = { kind = "bidaf", dim = 8, hidden_dim = 8, character_output_dim = 4, filters = [[3, 4]] }
train = { steps = 2, examples_per_batch = 4, validate_every = 2 }
"""
QUESTION, TEXT = "Where is Ada?", "Ada is in Rome, not in Oslo."


@pytest.fixture
def folder(tmp_path, monkeypatch):
    answers = [{"text": "Rome", "answer_start": 10}]
    line = json.dumps({"question": QUESTION, "context": TEXT, "answers": answers})
    (tmp_path / "q.jsonl").write_text(f"{line}\n" * 8)
    (tmp_path / "ask.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_all_verbs(monkeypatch, capsys):
    def printed() -> str:
        return capsys.readouterr().out

    check(Path("ask.toml"))
    text = printed()
    for line in ("repeated questions", "contexts also in train", "question tokens, median"):
        assert line in text
    assert "1 of 1 contexts are also in train" in text
    list(Trainer(load_settings("ask.toml"), Path("run"), lambda _: None))
    score(Path("run"), as_json=True)
    assert set(json.loads(printed())) >= {"exact", "f1", "loss", "questions"}
    lines = f"{QUESTION}\t{TEXT}\n".encode()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    predict(Path("run"), as_json=True)
    answer = json.loads(printed())
    assert TEXT[answer["start"] : answer["end"]] == answer["answer"]
    look(Path("run"), f"{QUESTION}\t{TEXT}")
    text = printed()
    for word in ("Where", "Ada", "?", "weight:"):
        assert word in text
    with pytest.raises(ValueError, match="TEXT: has no tab"):
        look(Path("run"), QUESTION)
    check_models({"a": load_settings("ask.toml")})  # of `regard compare`


def test_bad_data_is_one_line(folder, regard):
    (folder / "q.jsonl").write_text('{"question": "a"}\n')
    done = regard("check", "ask.toml")
    assert done.returncode == 1
    assert done.stderr == (
        "regard: q.jsonl:1: its context is missing; add it, or remove the question\n"
    )


def test_init(capsys):
    init("answer", ["model.kind=bert", "text.kind=wordpiece"])
    assert "allow_no_answer = false" in capsys.readouterr().out
