"""A tiny run, and predictions of files with it."""

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from support.batch_inputs import LINES, TEXTS

from regard.batch_prediction import input_parts
from regard.batch_prediction.file_prediction import RunSource, predict_files
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.text.train import train_tokenizer


def save_run(folder: Path, seed: int = 0) -> Run:
    settings = resolve_settings(
        {
            "task": "language",
            "seed": seed,
            "model": {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1, "max_positions": 24},
            "train": {"context_length": 24},
            "decode": {"kind": "greedy", "max_length": 2},
        }
    )
    run = Run(settings, {"text": train_tokenizer("characters", ["catm 0123456789"], 40)})
    run.save(folder)
    return run


@pytest.fixture(scope="module")
def run_folder(shared) -> Path:
    return shared("batch-prediction-run", save_run)


@pytest.fixture(scope="module")
def run(run_folder) -> Run:
    return Run.load(run_folder)


@pytest.fixture
def predict(run, run_folder, tmp_path):
    def call(inputs="in", output="out", *, source=None, **options):
        options = {"workers": 1, "progress": False, **options}
        source = source or RunSource(run, run_folder)
        return predict_files(source, tmp_path / inputs, tmp_path / output, **options)

    return call


@pytest.fixture
def build_run():
    return save_run


@pytest.fixture
def inputs(tmp_path) -> Path:
    """A folder with the same rows in every format."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    text = "".join(f"{line}\n" for line in LINES)
    (folder / "a.txt").write_text(text)
    (folder / "b.txt.gz").write_bytes(gzip.compress(text.encode()))
    rows = [{"id": n, "prompt": text} for n, text in enumerate(TEXTS)]
    (folder / "deep" / "c.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(rows), folder / "d.parquet", row_group_size=5
    )
    (folder / ".hidden").write_text("not an input")
    return folder


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(input_parts, "PART_ROWS", 4)
    monkeypatch.setattr(input_parts, "PARQUET_BATCH_ROWS", 2)
