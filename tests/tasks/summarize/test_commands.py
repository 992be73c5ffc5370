"""`regard look`, `check` and `predict` of summaries."""

import json
from pathlib import Path

import pytest

from regard.batching.memory_forecast import BatchShape
from regard.cli.check import report_lines
from regard.cli.look import look
from regard.models.catalogue import build_model
from regard.tasks.catalogue import find_task
from regard.tasks.load import resolve_settings
from regard.training.memory_use import MemoryUsage, measure_memory
from regard.training.trainer import Trainer

DATA = {"kind": "headlines", "size": 60, "held_out": 10}


@pytest.fixture(scope="module")
def run(shared) -> str:
    return str(shared("summarize", train_summarizer))


def train_summarizer(folder: Path) -> None:
    model = {"kind": "pointer", "dim": 8, "hidden_dim": 8}
    train = {"steps": 3, "examples_per_batch": 8, "max_tokens": 30}
    decode = {"kind": "beam", "width": 2, "max_length": 6}
    settings = {"task": "summarize", "data": DATA, "model": model, "train": train, "decode": decode}
    list(Trainer(resolve_settings(settings), folder, lambda _: None))


def test_look(run, capsys):
    look(Path(run), "Ann won the boat .", "Ann won")
    shown = capsys.readouterr().out
    assert shown.startswith("Ann won\n\n")
    rows = [line.split() for line in shown.splitlines()]
    [row] = [row for row in rows if row[:1] == ["Ann"] and len(row) > 1 and "." in row[1]]
    assert 0 <= float(row[1]) <= 1
    assert "words (weight at least 5%); p_gen follows each summary word" in shown
    look(Path(run), "Ann won the boat .")
    with pytest.raises(ValueError, match="TEXT: the document is empty"):
        look(Path(run), " ")


def test_predict(run, regard):
    text = "Ann won the boat .\n" + "Bob saw the boat at the park . " * 9 + "\n"
    done = regard("predict", run, "--json", stdin=text)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["document"] == "Ann won the boat ."
    assert {"word", "p_gen", "copied"} == set(first["words"][0])
    assert second["outputs"][0]["log_prob"] < 0
    assert done.stderr.count("notice: 1 of 2 documents are longer than train.max_tokens = 30") == 1


def test_check():
    settings = {"task": "summarize", "data": DATA, "train": {"max_tokens": 30}}
    small = {"kind": "pointer", "dim": 8, "hidden_dim": 8}

    def found(**more):
        wanted = resolve_settings({**settings, "model": {**small, **more}})
        memory = MemoryUsage(*[1] * 5, shape=BatchShape(1, 1, 1))
        builder = find_task(wanted.task).builder()
        return builder.check_data(wanted, lambda *given: given[-1], lambda *_: memory)

    said = "\n".join(report_lines(found()))
    assert "truncated to train.max_tokens" in said
    assert "is cut off by train.max_tokens = 30 or max_summary_tokens = 100" in said
    assert "very unequal" not in said
    assert "unknown to the vocabulary" not in said  # it copies
    assert "are unknown to the vocabulary" in "\n".join(report_lines(found(copying=False)))


def test_memory_is_measured_with_coverage():
    options, sizes = {"dim": 8, "hidden_dim": 8}, {"source_size": 50, "target_size": 50}
    settings = resolve_settings(
        {
            "task": "summarize",
            "model": {"kind": "pointer", **options},
            "train": {"coverage_after": 2400},
        }
    )
    found = measure_memory(settings, sizes, BatchShape(2, 30, 5))
    assert found.peak > found.weights > 0
    # Adam has two moments and a step of every tensor, so each was in the graph.
    tensors = list(build_model("pointer", {**options, **sizes}).parameters())
    assert found.optimizer == 2 * found.weights + 4 * len(tensors)


def test_bad_data_is_one_line(tmp_path):
    (tmp_path / "a.tsv").write_text("one\ttwo\n\ttwo\n")
    data = {"kind": "summaries", "train": str(tmp_path / "a.tsv"), "held_out": 0.0}
    with pytest.raises(ValueError, match=r"a\.tsv:2: the document is empty; write one, or remove"):
        Trainer(resolve_settings({"task": "summarize", "data": data}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
