"""A run folder of unknown origin: refused in one line, before memory is allocated."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

import regard
from regard.errors import InputError
from regard.files import digest_file
from regard.manifest import Manifest, read_manifest
from regard.tasks.run_folder import CONFIG_FILE, WEIGHTS_FILE

RECORDS = [{"source": "one two", "target": "1 2"}, {"source": "two one", "target": "2 1"}] * 4


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "numbers"
    model = {"kind": "transformer", "dim": 8, "heads": 2, "layers": 1}
    regard.fit("translate", RECORDS, model, steps=1, folder=folder, progress=False)
    return folder


@pytest.fixture
def run(original, tmp_path) -> Path:
    shutil.copytree(original, tmp_path / "run")
    return tmp_path / "run"


def change_config(folder: Path, old: str, new: str) -> None:
    text = (folder / CONFIG_FILE).read_text()
    assert old in text
    (folder / CONFIG_FILE).write_text(text.replace(old, new, 1))
    write_checksums(folder)


def change_weights(folder: Path, change) -> None:
    weights = safetensors.torch.load_file(folder / WEIGHTS_FILE)
    change(weights)
    safetensors.torch.save_file(weights, folder / WEIGHTS_FILE)
    write_checksums(folder)


def write_checksums(folder: Path) -> None:
    """A stranger writes checksums that fit."""
    manifest = read_manifest(folder)
    files = {name: digest_file(folder / name) for name in manifest.files}
    Manifest(files, manifest.facts).write(folder)


def message(folder: Path) -> str:
    with pytest.raises(InputError) as error:
        regard.load(str(folder))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("\ndim = 8", "\ndim = 40000", r"does not fit the settings ("),
        ("\ndim = 8", "\ndim = 100000", "model: dim = 100000 is more than 65,536; if this is"),
        ("\nlayers = 1", "\nlayers = 9", "does not fit the settings ("),
        ("\nlayers = 1", "\nlayers = 1000000000", "layers = 1000000000 is more than 1,000"),
        ("\nmax_positions = ", "\nmax_positions = 2000000 # ", "is more than 1,048,576"),
    ],
)
def test_sizes_are_checked_before_memory_is_allocated(old, new, part, run):
    change_config(run, old, new)
    assert part in message(run)


def test_the_limits_can_be_lifted(run, monkeypatch):
    monkeypatch.setenv("REGARD_UNLIMITED", "1")
    change_config(run, "\ndim = 8", "\ndim = 100000")
    assert "does not fit the settings (" in message(run)


def set_value(value: float):
    def change(weights):
        next(w for w in weights.values() if w.is_floating_point()).view(-1)[0] = value

    return change


def quantize(weights):
    name = next(n for n, w in weights.items() if w.is_floating_point())
    weights[name] = weights[name].to(torch.int8)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (set_value(float("nan")), "contains NaN"),
        (quantize, "is stored as I8"),
        (lambda weights: weights.popitem(), "is missing"),
        (lambda weights: weights.update(other=torch.ones(1)), "other is unknown"),
    ],
)
def test_weights_are_checked(change, part, run):
    change_weights(run, change)
    assert part in message(run)


def test_deep_settings_are_refused(run):
    config = run / CONFIG_FILE
    for text, part in [
        (".".join("a" * 20_000) + " = 1", "a key of more than 100 parts"),
        ("a = " + "[" * 5_000 + "]" * 5_000, "levels deep"),
        ("a = " + "{b = " * 5_000 + "1" + "}" * 5_000, "levels deep"),
        ("[" + ".".join("a" * 20_000) + "]", "a key of more than 100 parts"),
        ("a = 1" + "0" * 5_000, "not TOML"),
        ("a = 2000-13-45", "not TOML"),
    ]:
        config.write_text(text)
        write_checksums(run)
        assert part in message(run)


def replace(**parts):
    return lambda data: data.update(parts)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (replace(normalizer={"type": "Other"}), "normalizer 'Other' is not supported"),
        (
            replace(
                normalizer={
                    "type": "Sequence",
                    "normalizers": [
                        {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
                    ]
                    * 30,
                }
            ),
            "may make a text 1,073,741,824 times longer",
        ),
        (
            replace(normalizer={"type": "Replace", "pattern": {"Regex": ""}, "content": "a" * 99}),
            "may make a text 100 times longer",
        ),
        (
            replace(
                pre_tokenizer={
                    "type": "Split",
                    "pattern": {"Regex": "(a+)+$"},
                    "behavior": "Isolated",
                    "invert": False,
                }
            ),
            "repeats a repeated group",
        ),
        (
            replace(padding={"strategy": {"Fixed": 10**12}}, model={"type": "Huge", "vocab": {}}),
            "model 'Huge' is not supported",
        ),
        (lambda data: data["model"].update(dropout=0.5), "dropout makes encodings random"),
        (lambda data: data["model"]["vocab"].update(x=10**9), "is not the id of a token"),
        (replace(added_tokens=[{"id": -1}]), "-1 is not the id of a token"),
    ],
)
def test_tokenizers_are_checked(change, part, run):
    path = run / "source.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    write_checksums(run)
    assert part in message(run)


def test_deep_json_is_refused(run):
    (run / "source.json").write_text("[" * 100_000)
    write_checksums(run)
    assert "levels deep" in message(run)
