"""2,000 damaged files and folders: each is read, or refused in one line (benchmarks/fuzz.py)."""

import importlib
from itertools import chain
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILES, FOLDERS = 1_900, 100


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("fuzz")


def test_valid_files_are_read(fuzz, tmp_path):
    for number, reader in enumerate(fuzz.data_readers()):
        for name, data in reader.files.items():
            path = tmp_path / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        reader.read(tmp_path / str(number))


def test_damaged_files_are_read_or_refused(fuzz, tmp_path):
    trials = chain(
        fuzz.try_mutations(fuzz.data_readers(), FILES, seed=1),
        fuzz.try_mutations(fuzz.folder_readers(tmp_path), FOLDERS, seed=1),
    )
    outcomes = [f"{trial.reader}: {trial.outcome}" for trial in trials]
    failures = [text for text in outcomes if not text.endswith((": read", ": refused"))]
    assert failures == []
    assert sum(text.endswith(": refused") for text in outcomes) > (FILES + FOLDERS) / 4
