"""`regard check` refuses what `regard train` refuses, with the same line."""

import json
from pathlib import Path

import pytest

from regard.cli.app import main

PAIRS = "".join(f"satz {n}\tsentence {n}\n" for n in range(12))
LABELED = "".join(f"text {n}\t{'good' if n % 2 else 'bad'}\n" for n in range(12))
TRANSLATE = {"task": "translate", "data": {"kind": "files", "train": "train.tsv"}}
CLASSIFY = {"task": "classify", "data": {"kind": "labeled", "train": "train.tsv"}}
LANGUAGE = {"task": "language", "data": {"kind": "text", "train": "train.txt"}}
MODELS = {
    "translate": ["model.kind=transformer", "model.dim=8", "model.heads=2", "model.layers=1"],
    "classify": ["model.kind=birnn", "model.dim=8"],
    "language": ["model.kind=gpt2", "model.dim=8", "model.heads=2", "model.layers=1"],
}
CASES = {
    "no such file": (TRANSLATE, {}, [], "train.tsv: there is no such file"),
    "empty file": (TRANSLATE, {"train.tsv": ""}, [], "train.tsv: no lines (empty)"),
    "bad row": (TRANSLATE, {"train.tsv": PAIRS + "x\n"}, [], "train.tsv:13: 1 column"),
    "wrong encoding": (TRANSLATE, {"train.tsv": b"\xe9t\xe9\tsummer\n"}, [], "train.tsv:1: byte 1"),
    "all too long": (TRANSLATE, {"train.tsv": PAIRS}, ["train.max_tokens=1"], "no example is left"),
    "no such part": (
        TRANSLATE, {"train.tsv": PAIRS}, ["train.rate_multipliers={nothing=2.0}"],
        "the model has no part 'nothing'",
    ),
    "dev too long": (
        TRANSLATE, {"train.tsv": PAIRS, "dev.tsv": "a " * 600 + "\tb\n"},
        ["data.dev=dev.tsv", "train.max_tokens=20", "decode.max_length=20"], "no pair has at most",
    ),
    "empty dev": (
        TRANSLATE, {"train.tsv": PAIRS, "dev.tsv": ""}, ["data.dev=dev.tsv"],
        "dev.tsv: no lines (empty)",
    ),
    "one label": (CLASSIFY, {"train.tsv": "a\tb\n" * 5}, [], "at least two different names"),
    "label unseen in train": (
        CLASSIFY, {"train.tsv": LABELED, "dev.tsv": "a text\tugly\n"}, ["data.dev=dev.tsv"],
        "label 'ugly' is not in the training data",
    ),
    "nothing held out": (
        CLASSIFY, {"train.tsv": LABELED}, ["data.held_out=0.01"], "no records fall into dev",
    ),
    "no rows of a batch": (
        LANGUAGE, {"train.txt": "one two three\n"}, ["train.examples_per_batch=64"],
        "too few for 64 rows",
    ),
}  # fmt: skip


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The error lines of a command, after its data was written to an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.cli.check.measure_memory", lambda *_: pytest.fail("no refusal"))

    def run(command: str, *words: str) -> list[str]:
        with pytest.raises(SystemExit) as end:
            main([command, "config.toml", *words])
        assert end.value.code == 1
        return [line for line in capsys.readouterr().err.splitlines() if line.startswith("regard:")]

    return run


def write_config(settings: dict[str, object]) -> None:
    data = "".join(f"{k} = {json.dumps(v)}\n" for k, v in settings["data"].items())
    Path("config.toml").write_text(f'task = "{settings["task"]}"\n[data]\n{data}')


@pytest.mark.parametrize("case", CASES)
def test_check_refuses_with_the_line_of_train(refusal, case):
    settings, files, changes, expected = CASES[case]
    for name, text in files.items():
        Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    write_config(settings)
    words = [*MODELS[settings["task"]], *changes]
    checked = refusal("check", *words)
    trained = refusal("train", *words, "train.steps=1", "train.validate_every=1")
    assert checked == trained
    assert len(checked) == 1
    assert expected in checked[0]


def test_a_run_without_a_test_split_says_what_can_be_scored(refusal, capsys):
    Path("train.tsv").write_text(PAIRS)
    write_config(TRANSLATE)
    with pytest.raises(SystemExit):
        main(["train", "config.toml", *MODELS["translate"], "train.steps=1"])
    assert "Try: regard score runs/config --split train, or:" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["score", "runs/config"])
    error = capsys.readouterr().err
    assert "data: has no split 'test', but train; give one of these (--split train)" in error


def test_score_counts_skipped_rows(refusal, capsys):
    Path("train.tsv").write_text(f"{PAIRS}no tab\n")
    write_config(TRANSLATE)
    for words in (
        ["train", "config.toml", *MODELS["translate"], "train.steps=1", "--skip-bad"],
        ["score", "runs/config", "--split", "train", "--set", "decode.max_length=2"],
    ):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0
        assert "1 row skipped (first: train.tsv:13: 1 column" in capsys.readouterr().err
