"""predict, of a language model: what takes time is found out only for those who ask."""

import io
import json
import os
import re
import subprocess
import sys
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
    run.use_engine = lambda _: run
    monkeypatch.setattr(Run, "load", lambda _, device: run)  # noqa: ARG005

    def run_lines(data, **options):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        predict(Path("run"), **options)

    run_lines.run = run
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
        stub_run(b"one\nwrong\ntwo\n", strict=True)
    assert capsys.readouterr().out.splitlines() == [r"<one>\nend"]


@pytest.mark.parametrize("data", [b"wrong", b"wrong\n"])
def test_a_single_line_is_strict(stub_run, capsys, data):
    with pytest.raises(InputError, match="has no tab"):
        stub_run(data)
    assert capsys.readouterr().out == ""


def test_answers_appear_while_the_input_is_open(stub_run, monkeypatch, capsys):
    """A slow pipe: each line is answered before the next is written."""
    read_end, write_end = os.pipe()
    reader = os.fdopen(read_end, "rb")
    lines, printed = [b"one\n", b"wrong\ntw", b"o\n"], list[str]()

    class Pipe:
        def fileno(self):
            return reader.fileno()

        def read1(self, size):
            printed.append(capsys.readouterr().out)
            if lines:
                os.write(write_end, lines.pop(0))
            else:
                os.close(write_end)
            return reader.read1(size)

    def use_pipe(_, device):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Pipe()))
        return stub_run.run

    monkeypatch.setattr(Run, "load", use_pipe)
    with reader, pytest.raises(typer.Exit):
        predict(Path("run"))
    assert printed == ["", "<one>\\nend\n", "\n", "<two>\\nend\n"]


def test_chunks_grow_and_lines_stay_in_order(stub_run, capsys, monkeypatch):
    sizes, predict_all = list[int](), stub_run.run.predict
    stub_run.run.predict = lambda records: sizes.append(len(records)) or predict_all(records)
    words = [f"w{number}" for number in range(9000)]
    stub_run("\n".join(words).encode())
    printed = capsys.readouterr().out.splitlines()
    assert printed == [rf"<{word}>\nend" for word in words]
    assert sum(sizes) == 9000
    assert sizes[:3] == [16, 32, 64]
    assert max(sizes) == 512


def test_one_fault_does_not_cost_a_prediction_for_each_line(stub_run, capsys):
    calls, predict_all = list[int](), stub_run.run.predict
    stub_run.run.predict = lambda records: calls.append(len(records)) or predict_all(records)
    with pytest.raises(typer.Exit):
        stub_run(b"one\n" * 8 + b"one two three\n" + b"one\n" * 7)
    assert capsys.readouterr().out.splitlines() == [*[r"<one>\nend"] * 8, "", *[r"<one>\nend"] * 7]
    assert len(calls) == 9  # 16, and two halves of 16, 8, 4 and 2


def test_a_closed_pipe_ends_quietly(tmp_path):
    settings = resolve_settings(
        {
            "task": "language",
            "model": {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1, "max_positions": 8},
            "train": {"context_length": 8},
            "decode": {"kind": "greedy", "max_length": 2},
        }
    )
    text = train_tokenizer("characters", ["one two"], 40)
    Run(settings, {"text": text}).save(tmp_path / "run")
    command = [sys.executable, "-m", "regard", "predict", str(tmp_path / "run")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"one")
        process.stdout.close()
        process.stdin.write(b"two\n" * 100)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_lines_can_be_unescaped(stub_run, capsys):
    """A backslash and a letter, and a line break, remain different."""
    words = ["one", r"o\ne", "o\\", "\\\\n"]
    stub_run("".join(f"{word}\n" for word in words).encode())
    lines = capsys.readouterr().out.splitlines()
    names = {"n": "\n", "r": "\r", "\\": "\\"}
    plain = [re.sub(r"\\(.)", lambda match: names[match[1]], line) for line in lines]
    assert plain == [f"<{word}>\nend" for word in words]
