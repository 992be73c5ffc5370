"""The data doctor on texts with classes, and on plain text: it finds what was put there."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.cli.check import report_lines
from regard.tasks.catalogue import find_task
from regard.tasks.load import resolve_settings

TRAIN = [
    *(f"a good film number {n}\t+" for n in range(20)),
    *(f"a bad film number {n}\t-" for n in range(10)),
    "a good film number 1\t+",  # 31: again
    "a good film number 2\t-",  # 32: another label
    "\t+",  # 33: empty
    f"{'long ' * 12}\t-",  # 34: over train.max_tokens
    "broken\ufffd\trare",  # 35
]
DEV = [
    "a good film number 3\t+",  # a text of train
    "a good film number 4\t-",  # with another label
    "never seen before\t-",
]
CLASSIFY = {
    "task": "classify",
    "data": {"kind": "labeled", "train": "train.tsv", "dev": "dev.tsv", "test": "dev.tsv"},
    "text": {"kind": "words"},
    "model": {"kind": "birnn", "dim": 4, "hidden_dim": 4},
    "train": {"examples_per_batch": 5, "max_tokens": 8},
}
LANGUAGE = {
    "task": "language",
    "data": {"kind": "text", "train": "a.txt", "dev": "b.txt", "test": "b.txt", "unit": "line"},
    "text": {"kind": "characters"},
    "model": {"kind": "rnnlm", "dim": 4, "hidden_dim": 4},
}


def passing(what, total, records):
    return records


def no_memory(settings, sizes, shape):
    raise AssertionError("texts have no forecast of memory")


def check_data(raw: dict[str, Any]) -> dict[str, Any]:
    settings = resolve_settings(raw)
    return find_task(settings.task).builder().check_data(settings, passing, no_memory)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text("\n".join(TRAIN) + "\n")
    Path("dev.tsv").write_text("\n".join(DEV) + "\n")
    Path("a.txt").write_text("abc\nabc\n\ncab\n")
    Path("b.txt").write_text("cab\nxa\n")
    return tmp_path


def test_texts_with_classes(folder: Path):
    found = json.loads(json.dumps(check_data(CLASSIFY)))
    train, dev = found["splits"]["train"], found["splits"]["dev"]
    assert (train["texts"], dev["texts"]) == (35, 3)
    assert (train["empty_text"], train["repeated_texts"], train["several_labels"]) == (1, 1, 1)
    assert train["labels"] == {"+": 22, "-": 12, "rare": 1}
    assert train["shortened"] == 1 / 35
    assert train["text"] == {"median": 6, "most": 6, "longest": 13, "unknown": 0.0}
    assert (dev["leaked_texts"], dev["leaked_labels"]) == (2, 1)
    assert dev["text"]["unknown"] == 3 / 16
    assert found["batches"]["per_epoch"] == 7
    assert 0 < found["batches"]["padding"] < 1
    assert (found["model"]["kind"], found["model"]["labels"]) == ("birnn", 3)
    said = "\n".join(found["warnings"])
    for words in (
        "train: 1 texts are empty (first: train.tsv:33); take them out",
        "train: 1 texts are there with different labels; decide on one for each",
        "train: 1 texts hold U+FFFD, where text was decoded wrongly (first: train.tsv:35)",
        "train: label 'rare' has only 1 texts to be learned from; give more",
        "train: the end of 2.9% is cut off by train.max_tokens = 8; raise it",
        "dev: 2 of 3 texts are also in train: scores will be too high",
        "dev: only 3 texts",
        "dev: 18.8% of its tokens are unknown",
    ):
        assert words in said
    rows = {line[:30].strip(): line[30:].split() for line in report_lines(found)}
    assert rows["texts with several labels"] == ["1", "0", "0"]
    assert rows["label +"] == ["22", "1", "1"]
    assert rows["with the same label"] == ["1", "1"]
    assert any(line.endswith("3 labels") for line in report_lines(found))


def test_a_label_that_train_has_not_is_told(folder: Path):
    Path("dev.tsv").write_text("some text\tnew\n")
    warnings = check_data(CLASSIFY)["warnings"]
    assert "dev: label 'new' is not in train, where it would have to be learned" in warnings


def test_good_classes_have_no_warnings():
    data = {
        "kind": "planted",
        "size": 300,
        "held_out": 200,
        "classes": 2,
        "min_sentences": 2,
        "max_sentences": 3,
    }
    han = {"kind": "han", "dim": 4, "hidden_dim": 4}
    found = check_data({**CLASSIFY, "data": data, "model": han, "train": {}})
    assert found["warnings"] == []
    assert "padding" not in found["batches"]
    assert "No warnings." in list(report_lines(found))


@pytest.mark.parametrize("task", ["language", "pretrain"])
def test_plain_text(folder: Path, task: str):
    settings = {"task": "pretrain", "data": LANGUAGE["data"], "text": LANGUAGE["text"]}
    settings["model"] = {"kind": "bert", "dim": 4, "heads": 2, "layers": 1, "pretrain": "both"}
    found = check_data(LANGUAGE if task == "language" else settings)
    train, dev = found["splits"]["train"], found["splits"]["dev"]
    assert (train["documents"], train["characters"], train["tokens"]) == (4, 9, 9 + 4)
    assert (train["empty_text"], train["repeated_documents"]) == (1, 1)
    assert (dev["leaked_documents"], dev["text"]["unknown"]) == (1, 1 / 5)
    assert "dev: 1 of 2 documents are also in train" in "\n".join(found["warnings"])
    rows = {line[:30].strip(): line[30:].split() for line in report_lines(found)}
    assert rows["tokens, with end tokens"] == ["13", "7", "7"]
