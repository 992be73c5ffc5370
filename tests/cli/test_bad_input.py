"""Bad input: one line on standard error with the place and a remedy, and nothing half written."""

import errno
import io
import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from regard import files as whole
from regard.cli.app import main
from regard.cli.serve import open_browser
from regard.training import checkpoint

GOOD = "".join(f"{word}\t{word[::-1]}\n" for word in ("ab", "abc", "bca", "cab", "cba", "aabb"))
CONFIG = """
[data]
kind = "files"
train = "train.tsv"
dev = "dev.tsv"
[text]
kind = "characters"
[model]
kind = "rnnsearch"
dim = 8
[train]
steps = 4
examples_per_batch = 4
save_every = 2
keep_finished = true
validate_every = 2
max_tokens = 12
[decode]
kind = "greedy"
"""
TRAIN = ["train", "config.toml", "--run", "out"]
CHECK = ["check", "config.toml"]
SIDES = '["train.en", "train.de"]'


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def regard(tmp_path, monkeypatch, capsys):
    """The command line in this process, in a folder with good data and a good config."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REGARD_DEBUG", raising=False)
    Path("config.toml").write_text(CONFIG)
    Path("train.tsv").write_text(GOOD)
    Path("dev.tsv").write_text(GOOD)

    def run(*words: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as end:
            main(list(words))
        assert isinstance(end.value.code, int)
        return Ended(end.value.code, *capsys.readouterr())

    return run


def says(ended: Ended, *words: str) -> None:
    assert ended.code in (1, 2), ended
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith("regard: ")
    assert ended.out == ""
    for word in words:
        assert word in ended.err


FILES = {
    "a ragged TSV": (
        {"train.tsv": f"{GOOD}a\tb\tc\n"},
        [],
        ["train.tsv:7: 3 columns, but 2 expected", "separate them by single tabs"],
    ),
    "a ragged dev": (
        {"dev.tsv": f"{GOOD}a\n"},
        [],
        ["dev.tsv:7: 1 column, but 2 expected", "separate them by single tabs"],
    ),
    "sides of different length": (
        {"train.en": "a\nb\n", "train.de": "a\n"},
        [f"data.train={SIDES}", f"data.dev={SIDES}"],
        ["train.en has 2, train.de has 1 lines; parallel files need the same number"],
    ),
    "not UTF-8": (
        {"train.tsv": b"a\tb\nM\xfcller\tb\n"},
        [],
        ["train.tsv:2: byte 2 is 0xfc, which is not UTF-8; convert the file, as with iconv"],
    ),
    "an empty file": ({"train.tsv": ""}, [], ["train.tsv: no lines (empty)"]),
    "an empty dev": ({"dev.tsv": ""}, [], ["dev.tsv: no lines (empty)"]),
    "nothing but empty lines": ({"train.tsv": "\t\n\t\n"}, [], ["texts are empty"]),
    "no file": ({}, ["data.train=gone.tsv"], ["gone.tsv: there is no such file"]),
    "all pairs too long": (
        {},
        ["train.max_tokens=1"],
        ["no example is left; is the data empty, or train.max_tokens small?"],
    ),
    "an unknown setting": (
        {},
        ["train.lerning_rate=1"],
        ["train.lerning_rate: unknown setting; did you mean 'learning_rate'?"],
    ),
    "an unknown setting in the file": (
        {"config.toml": f"{CONFIG}\n[modle]\ndim = 3\n"},
        [],
        ["config.toml: modle: unknown setting; did you mean 'model'?"],
    ),
    "a wrong type": (
        {},
        ["train.steps=many"],
        ['command line: train.steps: expected a whole number, not "many"'],
    ),
    "no TOML": ({"config.toml": "[data\n"}, [], ["config.toml:1: not TOML"]),
    "an unknown kind": (
        {},
        ["model.kind=transfromer"],
        ["model.kind: must be one of", 'did you mean "transformer"?'],
    ),
    "no setting at all": ({}, ["steps"], ["'steps' is no setting; write it as train.steps=50"]),
}


@pytest.mark.parametrize("verb", [TRAIN, CHECK], ids=["train", "check"])
@pytest.mark.parametrize("case", FILES.values(), ids=FILES)
def test_data_and_settings(regard, case, verb):
    files, words, said = case
    for name, text in files.items():
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    says(regard(*verb, *words), *said)
    assert not Path("out").exists()


@pytest.mark.parametrize("verb", ["train", "check"])
def test_no_config(regard, verb):
    says(
        regard(verb, "gone.toml"),
        "gone.toml: there is no such file or preset; `regard init` writes one",
    )
    says(regard(verb), "Missing argument", f"(see regard {verb} --help)")


def contents(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_run_and_what_is_none(regard):
    """One training, and what is asked of it."""
    assert regard(*TRAIN).code == 0
    before = contents("out")
    says(
        regard(*TRAIN, "seed=9"),
        "out: holds a run with other settings (seed: 1 -> 9); use another folder",
    )

    assert regard("predict", "out", stdin=b"ab\nabc\n").code == 0
    said = "13 tokens, but the run was trained on texts of at most 12; split it into sentences"
    strict = regard("predict", "out", "--strict", stdin=b"a" * 13 + b"\nab\n")
    says(strict, f"standard input:1: {said}")
    says(regard("look", "out", "a" * 13), f"TEXT: {said}")
    says(
        regard("predict", "out", "--strict", stdin=b"a\xff\nab\n"),
        "standard input:1: byte 2 is 0xff, which is not UTF-8; convert it, as with iconv",
    )
    says(regard("score", "out", "--split", "tset"), "split must be one of train, dev, not 'tset'")

    assert contents("out") == before
    config = Path("out/config.toml")
    config.write_text(config.read_text().replace('task = "translate"', 'task = "sing"'))
    changed = "the file was changed or damaged; restore it or train again"
    for words in (TRAIN, ["predict", "out"]):
        says(regard(*words), "out/config.toml: has ", " in manifest.json; ", changed)
    known = '"translate", "summarize", "language", "chat", "classify", "tag", "understand", '
    known += (
        '"answer", "pretrain", "image", "caption", "music", "copy", "recall", "bandit", '
        '"fewshot", "fold"'
    )
    update = ("verify", "out", "--update")
    says(regard(*update), f'out/config.toml: task: must be one of {known}, not "sing"')
    config.write_text(config.read_text().replace('"sing"', '"summarize"'))
    Path("out/manifest.json").unlink()
    says(regard("predict", "out"), "out: has no manifest.json", "regard verify out --update")
    config.unlink()
    for verb in (["predict"], ["score"], ["look"]):
        text = ["ab"] if verb == ["look"] else []
        says(regard(*verb, "out", *text), "out: is not a run, there is no config.toml in it")


def test_a_folder_of_something_else(regard):
    Path("photos").mkdir()
    Path("photos/cat.jpg").write_text("cat")
    says(
        regard("train", "config.toml", "--run", "photos"),
        "photos: is not a run (it holds cat.jpg); use another folder",
    )
    assert [path.name for path in Path("photos").iterdir()] == ["cat.jpg"]
    says(regard("train", "config.toml", "--run", "dev.tsv"), "dev.tsv: is a file; name a folder")
    says(regard("predict", "gone"), "gone: is not a run, there is no config.toml in it")
    says(regard("train", "config.toml", "--run", "."), "use another folder")


def test_a_folder_beside_a_run_or_around_it(regard):
    for name in ("runs/dates", "more/dates"):
        Path(name).mkdir(parents=True)
        Path(name, "config.toml").write_text(CONFIG)
    says(regard("predict", "runs/date"), "did you mean runs/dates?")
    says(regard("predict", "runs"), "name one of its runs, such as runs/dates")
    says(regard("serve", "runs/dates", "more/dates"), "runs/dates and more/dates: two runs have")


def test_a_machine_without_a_browser(capsys, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    open_browser("http://127.0.0.1:8000/")
    says = capsys.readouterr().err
    assert says == "--open: there is no browser on this machine; open http://127.0.0.1:8000/\n"


@pytest.mark.parametrize("place", ["weights", "checkpoint", "log"])
def test_a_full_disk(regard, monkeypatch, place):
    """It is said in one line, what was saved before is intact, and with room it goes on."""
    assert regard(*TRAIN, "train.steps=2").code == 0
    before = {name: data for name, data in contents("out").items() if "step-00000002" in name}
    assert len(before) == 5

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        if place == "weights":
            patch.setattr(whole.os, "fsync", full)
        elif place == "checkpoint":
            patch.setattr(checkpoint, "write_synced", full)
        else:
            patch.setattr("regard.training.log.write_all", full)
        ended = regard(*TRAIN)
    assert ended.code == 1
    last = ended.err.splitlines()[-1]
    assert last.startswith("regard: out/")
    assert "no space left on device" in last
    assert "intact; make room, and give the same command again" in last
    assert {name: contents("out")[name] for name in before} == before
    assert not [name for name in contents("out") if "/." in name]

    again = regard(*TRAIN)
    assert again.code == 0
    assert "out: resumed after step 2" in again.err
    entries = map(json.loads, Path("out/log.jsonl").read_text().splitlines())
    assert [entry.get("number") for entry in entries] == [1, 2, None, 3, 4, None]
