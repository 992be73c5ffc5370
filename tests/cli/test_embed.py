"""`regard embed`: text, arrays and JSON lines, from arguments and from standard input."""

import json
from pathlib import Path

import numpy as np
import pytest

import regard as package
from regard.run import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    records = [{"text": f"a {word} film", "label": word} for word in ("good", "bad")] * 4
    model = {"kind": "bert", "dim": 8, "heads": 2, "layers": 1}
    package.fit("classify", records, model, steps=1, folder=folder / "run", progress=False)
    return folder


def test_all_formats_hold_the_same_numbers(folder, command):
    texts = ["a good film", "", "a bad film"]
    expected = Run.load(folder / "run").embed(texts)
    lines = command("embed", "run", stdin="\n".join(texts) + "\n").splitlines()
    numbers = [[float(number) for number in line.split()] for line in lines]
    np.testing.assert_array_equal(np.float32(numbers), expected)
    rows = [json.loads(line) for line in command("embed", "run", *texts, "--json").splitlines()]
    assert [row["text"] for row in rows] == texts
    np.testing.assert_array_equal(np.float32([row["embedding"] for row in rows]), expected)
    printed = command("embed", "run", *texts, "--output", "vectors.npy")
    assert printed == "vectors.npy: 3 vectors written\n"
    np.testing.assert_array_equal(np.load(folder / "vectors.npy"), expected)


def test_settings_change_the_pooling(folder, command):
    first = command("embed", "run", "a film", "--set", "vectors.pooling=first")
    assert first != command("embed", "run", "a film")


def test_wrong_output_is_one_line(folder, error_line, monkeypatch):
    monkeypatch.chdir(folder)
    told = error_line("embed", "run", "x", "--output", "x.csv")
    assert "x.csv: unknown format '.csv'; use one of .npy," in told
    assert "x.npy: --json needs" in error_line("embed", "run", "x", "--json", "--output", "x.npy")
