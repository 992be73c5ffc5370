"""`regard verify`, and what a training says about changed files, data and threads."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.cli.app import main
from regard.run import Run

CONFIG = """
[data]
kind = "files"
train = "pairs.tsv"
[text]
kind = "characters"
[model]
kind = "rnnsearch"
dim = 4
hidden_dim = 4
[train]
steps = 2
examples_per_batch = 2
keep_finished = true
[decode]
kind = "greedy"
max_length = 4
"""
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch, capsys) -> Call:
    """Return a function that runs a command in a folder with a run, `run`."""
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("ab\tba\nabc\tcba\n")
    Path("small.toml").write_text(CONFIG)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ab\n")))
        with pytest.raises(SystemExit) as end:
            main(list(words))
        output = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return end.value.code, output.out, output.err

    assert run("train", "small.toml", "--run", "run")[0] == 0
    return run


def flip_last_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_an_intact_run(call: Call):
    code, output, _ = call("verify", "run")
    assert (code, output) == (0, "run: 4 files and 1 checkpoints are intact\n")
    code, output, _ = call("verify", "run", "--update")
    assert (code, output.splitlines()[0]) == (0, "run: accepted all files, none was changed")


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "source.json", "config.toml", "manifest.json"]
)
def test_one_flipped_bit_is_one_line(call: Call, name: str):
    path = Path("run", name)
    flip_last_bit(path)
    for command in ("predict", "score", "verify"):
        code, output, error = call(command, "run", *["--split=train"] * (command == "score"))
        line = output or error
        assert (code, line.count("\n")) == (1, 1)
        assert f"run/{name}:" in line
    code, _, error = call("train", "small.toml", "--run", "run")
    assert code == 1
    assert f"run/{name}:" in error


def test_a_damaged_checkpoint_is_reported(call: Call):
    flip_last_bit(Path("run/checkpoints/step-00000002/optimizer.safetensors"))
    code, output, _ = call("verify", "run")
    assert code == 1
    assert "step-00000002/optimizer.safetensors: checksum differs" in output
    with pytest.raises(ValueError, match="checksum differs"):
        Run.load("run/checkpoints/step-00000002")


def test_an_intended_change_is_accepted(call: Call):
    config = Path("run/config.toml")
    config.write_text(config.read_text().replace("max_length = 4", "max_length = 6"))
    assert call("predict", "run")[0] == 1
    code, output, _ = call("verify", "run", "--update")
    assert (code, output.splitlines()[0]) == (0, "run: accepted config.toml")
    assert call("predict", "run")[0] == 0
    settings: Any = Run.load("run").settings
    assert settings.decode.max_length == 6


def test_sizes_are_compared_in_any_case(call: Call):
    flip_last_bit(Path("run/weights.safetensors"))
    Run.load("run", verify=False)
    Path("run/weights.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="has 0 bytes"):
        Run.load("run", verify=False)


def test_changed_data_are_refused_unless_accepted(call: Call):
    train = ("train", "small.toml", "--run", "run", "train.steps=3")
    Path("pairs.tsv").write_text("ab\tba\nabc\tabc\n")
    code, _, error = call(*train)
    assert (code, error.count("\n")) == (1, 1)
    assert "pairs.tsv: was changed since the training in run began; use another folder" in error
    assert call(*train, "--accept-changed-data")[0] == 0
    assert call(*train)[0] == 0  # the new files are those of the run now


def test_another_number_of_threads_is_reported(call: Call):
    threads = torch.get_num_threads()
    try:
        code, _, error = call("train", "small.toml", "--run", "run", "--threads", str(threads + 1))
    finally:
        torch.set_num_threads(threads)
    assert code == 0
    assert f"run: the training began with threads = {threads}, and continues with" in error
    assert f"--threads {threads}" in error
