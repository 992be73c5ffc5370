"""`regard check` prints what the doctor found; what it finds is tested in tests/tasks."""

import json
from pathlib import Path

import pytest

from regard.batching.memory_forecast import BatchShape
from regard.cli.app import main
from regard.training.memory_use import MemoryUsage

TRAIN = "".join(f"satz {n}\tsentence {n}\n" for n in range(40))


@pytest.fixture
def regard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The command line in this process; memory is not measured, which takes one of its own."""

    def guess(settings, sizes, shape: BatchShape) -> MemoryUsage:
        return MemoryUsage(*(n * 10**6 for n in (300, 1, 2, 3, 40)), shape)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.cli.check.measure_memory", guess)
    Path("train.tsv").write_text(TRAIN)
    Path("dev.tsv").write_text("satz 1\tsentence 1\nneuer satz\t\n")
    Path("config.toml").write_text(
        '[data]\nkind = "files"\ntrain = "train.tsv"\ndev = "dev.tsv"\n[model]\ndim = 8\n'
    )

    def run(*words: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            main(["check", "config.toml", *words])
        assert end.value.code == 0
        return capsys.readouterr()

    return run


def test_a_report_with_warnings_ends_well(regard):
    out, err = regard("train.examples_per_batch=5", "text.kind=characters")
    assert err == ""
    lines = out.splitlines()
    rows = {line[:30].strip(): line[30:].split() for line in lines[2:24]}
    assert rows[""] == ["train", "dev"]
    assert rows["pairs"] == ["40", "2"]
    assert rows["empty target"] == ["0", "1"]
    assert rows["pairs also in train"] == ["1"]
    assert rows["source tokens, median"] == ["7", "6"]
    assert rows["over train.max_tokens"] == ["0.00%", "0.00%"]
    assert "an epoch     8 batches, " in out
    assert "the model    rnnsearch, " in out
    assert "memory       about 346 MB at its peak: 300 for Python and torch, 6 for weights" in out
    warnings = lines[lines.index("Warnings:") + 1 :]
    assert all(line.startswith("- dev: ") for line in warnings)
    assert "- dev: 1 of 1 pairs are also in train: scores will be too high" in out
    assert "- dev: 1 pairs have an empty target (first: dev.tsv:2); take them out" in out


def test_json_is_the_same_for_a_program(regard):
    out, _ = regard("--json")
    found = json.loads(out)
    assert found["splits"]["dev"]["leaked_pairs"] == 1
    assert found["memory"]["peak"] == 346 * 10**6
    assert set(found) == {"data", "splits", "batches", "model", "memory", "warnings"}


def test_what_was_not_counted_in_full_is_said(regard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("regard.tasks.doctor.counts.MAX_TOKENIZED_RECORDS", 10)
    out, _ = regard()
    assert "train: tokens are counted in one pair of 4\n" in out
