"""`regard look`, `check` and `predict` of summaries."""

import json
import subprocess
import sys

import pytest

from regard.config.load import resolve
from regard.train.fit import Fit

DATA = {"kind": "headlines", "size": 60, "held_out": 10}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("run")
    model = {"kind": "pointer", "dim": 8, "hidden_dim": 8}
    train = {"steps": 3, "sentences_per_batch": 8, "longest": 30}
    decode = {"kind": "beam", "width": 2, "max_length": 6}
    settings = {"task": "summarise", "data": DATA, "model": model, "train": train, "decode": decode}
    list(Fit(resolve(settings), folder, lambda _: None).events())
    return str(folder)


def test_look(run, regard):
    done = regard("look", run, "Ann won the boat .", "--target", "Ann won")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Ann won\n\n")
    rows = [line.split() for line in done.stdout.splitlines()]
    [row] = [row for row in rows if row[:1] == ["Ann"] and len(row) > 1 and "." in row[1]]
    assert 0 <= float(row[1]) <= 1
    assert "words, those with at least 5% of a look; behind a word of the summary: p_gen" in (
        done.stdout
    )
    done = regard("look", run, " ")
    assert (done.returncode, done.stderr) == (1, "regard: TEXT: the document is empty\n")


def test_predict(run):
    text = "Ann won the boat .\n" + "Bob saw the boat at the park . " * 9 + "\n"
    command = [sys.executable, "-m", "regard", "predict", run, "--json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["document"] == "Ann won the boat ."
    assert {"word", "p_gen", "copied"} == set(first["words"][0])
    assert second["outputs"][0]["log_prob"] < 0
    assert done.stderr.count("notice: 1 of 2 documents are longer than train.longest = 30") == 1


def test_check(tmp_path, regard):
    config = tmp_path / "a.toml"
    config.write_text(
        'task = "summarise"\ndata = { kind = "headlines", size = 60, held_out = 10 }\n'
        'model = { kind = "pointer", dim = 8, hidden_dim = 8 }\n'
        "train = { longest = 30, sentences_per_batch = 8 }\n"
    )
    done = regard("check", str(config))
    assert done.returncode == 0, done.stderr
    assert "cut at train.longest" in done.stdout
    assert "is cut off by train.longest = 30 or longest_summary = 100" in done.stdout
    assert "very unequal" not in done.stdout
    assert "unknown to the vocabulary" not in done.stdout  # it copies
    done = regard("check", str(config), "model.copying=false")
    assert "are unknown to the vocabulary" in done.stdout


def test_bad_data(tmp_path, regard):
    (tmp_path / "a.tsv").write_text("one\ttwo\n\ttwo\n")
    config = tmp_path / "a.toml"
    data = f'{{ kind = "summaries", train = "{tmp_path / "a.tsv"}", held_out = 0.0 }}'
    config.write_text(f'task = "summarise"\ndata = {data}\n')
    done = regard("train", str(config), "--run", str(tmp_path / "run"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "a.tsv:2: the document is empty; write one, or take the line out"
    )
