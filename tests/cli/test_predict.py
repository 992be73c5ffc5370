"""predict, of a language model: what takes time is found out only for those who ask."""

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from regard.cli.predict import predict
from regard.errors import InputError
from regard.run import Run
from regard.tasks.base import Prediction
from regard.tasks.language.task import LanguageTask
from regard.tasks.load import resolve_settings
from regard.text.train import train_tokenizer


def test_next_words_are_for_json_only(tmp_path, monkeypatch, capsys):
    settings = resolve_settings(
        {
            "task": "language",
            "model": {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1, "max_positions": 8},
            "train": {"context_length": 8},
            "decode": {"kind": "greedy", "max_length": 20, "min_length": 20},
        }
    )
    text = train_tokenizer("characters", ["the cat sat on the mat"], 40)
    Run(settings, {"text": text}).save(tmp_path)
    asked = list[str]()
    inner = LanguageTask.next_words
    monkeypatch.setattr(
        LanguageTask,
        "next_words",
        lambda task, *given: asked.append(given[0]) or inner(task, *given),
    )

    def told(as_json: bool) -> list[str]:
        lines = io.BytesIO(b"the c\nthe \n")
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=lines))
        predict(tmp_path, as_json=as_json)
        return capsys.readouterr().out.splitlines()

    plain = told(as_json=False)
    assert asked == []
    predict(tmp_path, ["the c", "the "])  # on the command line: nothing is read from elsewhere
    assert capsys.readouterr().out.splitlines() == plain
    assert [len(line) for line in plain] == [25, 24]
    full = [json.loads(line) for line in told(as_json=True)]
    assert asked == [one["prompt"] for one in full] == ["the c", "the "]
    assert [one["prompt"] + one["outputs"][0]["text"] for one in full] == plain
    for one in full:
        assert 0 < sum(found["probability"] for found in one["next"]) <= 1
        assert set(one["next_tokens"][0]) == {"token", "probability"}
    assert all(found["word"].startswith("c") for found in full[0]["next"])


def test_a_prefix_begins_every_output(stub_run, capsys):
    stub_run(b"one\ntwo\n", prefix="a b")
    assert capsys.readouterr().out.splitlines() == [r"<one>\nend a b", r"<two>\nend a b"]


class StubTask:
    """A task that fails for long texts, and answers with two lines."""

    accepts_prefix = True

    def parse(self, line, location):
        if line == "wrong":
            raise InputError(f"{location}: has no tab")
        return {"text": line}

    def predict(self, records):
        if any(len(record["text"]) > 9 for record in records):
            raise InputError("the text has 10 tokens, but the model reads 9; shorten it")
        return [
            Prediction(f"<{record['text']}>\nend {record.get('prefix', '')}".rstrip())
            for record in records
        ]

    def details(self, _record):
        return {}


@pytest.fixture
def stub_run(monkeypatch, unchecked):
    text = train_tokenizer("words", ["one two three wrong"], 40)
    run = SimpleNamespace(task=StubTask(), vocabularies={"text": text})
    run.predict = run.task.predict
    run.override = lambda _: run
    monkeypatch.setattr(Run, "load", lambda _: run)

    def run_lines(data, **options):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        predict(Path("run"), **options)

    return run_lines


LINES = b"one\n\nwrong\none two three\nzebra\n\xff\ntwo\n"


def test_every_line_has_an_answer(stub_run, capsys):
    with pytest.raises(typer.Exit):
        stub_run(LINES)
    captured = capsys.readouterr()
    answers = [r"<one>\nend", "", "", "", r"<zebra>\nend", "", r"<two>\nend"]
    assert captured.out.split("\n") == [*answers, ""]
    problems = captured.err.splitlines()
    assert problems[0] == "regard: standard input:3: has no tab"
    assert problems[1].startswith("regard: standard input:4: the text has 10 tokens")
    assert problems[2].startswith("regard: standard input:5: the vocabulary of the run has none")
    assert problems[3].startswith("regard: standard input:6: byte 1 is 0xff")
    assert len(problems) == 4


def test_json_has_an_object_for_every_line(stub_run, capsys):
    with pytest.raises(typer.Exit):
        stub_run(LINES, as_json=True)
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(objects) == 7
    assert objects[0] == {"text": "<one>\nend"}
    assert objects[1] == {"input": "", "text": ""}
    assert objects[2] == {"input": "wrong", "error": "standard input:3: has no tab"}


def test_strict_stops_at_the_first_fault(stub_run, capsys):
    with pytest.raises(InputError, match="has no tab"):
        stub_run(b"one\nwrong\n", strict=True)
    assert capsys.readouterr().out == ""


def test_lines_can_be_unescaped(stub_run, capsys):
    """A backslash and a letter, and a line break, remain different."""
    words = ["one", r"o\ne", "o\\", "\\\\n"]
    stub_run("".join(f"{word}\n" for word in words).encode())
    lines = capsys.readouterr().out.splitlines()
    names = {"n": "\n", "r": "\r", "\\": "\\"}
    plain = [re.sub(r"\\(.)", lambda match: names[match[1]], line) for line in lines]
    assert plain == [f"<{word}>\nend" for word in words]
