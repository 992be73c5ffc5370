"""init, train, score, predict and look: from a file of pairs to answers, as a user goes."""

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from regard.tasks.load import load_settings
from regard.tasks.translate.settings import TranslateSettings

SMALL = [
    "text.kind=characters",
    "model.dim=16",
    "train.steps=6",
    "train.save_every=3",
    "train.keep_finished=true",
    "train.validate_every=3",
    "train.examples_per_batch=4",
    "decode.kind=greedy",
]


@pytest.fixture(scope="module")
def folder(shared, regard) -> Path:
    """A folder with a run on a user's own TSV, trained by the command line."""

    def build(folder: Path) -> None:
        rows = [f"{word}\t{word[::-1]}" for word in ("ab", "abc", "bca", "cab", "cba", "aabb")]
        (folder / "pairs.tsv").write_text("\n".join(rows) + "\n")
        (folder / "config.toml").write_text(
            '[data]\nkind = "files"\ntrain = "pairs.tsv"\ndev = "pairs.tsv"\ntest = "pairs.tsv"\n'
        )
        done = regard("train", "config.toml", *SMALL, "--run", "out", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "step 6: dev loss" in done.stderr
        assert "out: trained for 6 steps" in done.stdout

    return shared("translate", build)


@pytest.fixture
def call(folder: Path, regard) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """`call("score", "out")`: a command in the folder of the run."""
    return partial(regard, cwd=folder)


def test_init_prints_what_train_reads(regard, tmp_path: Path):
    done = regard("init", "translate")
    assert done.returncode == 0
    (tmp_path / "config.toml").write_text(done.stdout)
    assert load_settings(tmp_path / "config.toml") == TranslateSettings()
    assert "# Number of optimizer steps; alternative: epochs." in done.stdout


def test_the_same_command_goes_on(folder: Path, regard, tmp_path: Path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    words = [word.replace("steps=6", "steps=8") for word in SMALL]
    done = regard("train", "config.toml", *words, "--run", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "out: resumed after step 6; 2 more steps follow" in done.stderr
    assert "trained for 8 steps" in done.stdout


def test_score(call):
    shown = call("score", "out")
    assert shown.returncode == 0, shown.stderr
    assert "bleu" in shown.stdout
    assert "nrefs:1|case:mixed" in shown.stdout
    scores = json.loads(call("score", "out", "--json", "--split", "dev").stdout)
    assert scores["sentences"] == 6


def test_settings_of_a_run_can_be_changed_for_one_call(call):
    done = call("score", "out", "--json", "--set", "metrics.tokenize=none")
    assert "tok:none" in json.loads(done.stdout)["bleu_signature"]
    words = ["decode.kind=beam", "decode.width=3", "decode.n_best=3"]
    changes = [word for change in words for word in ("--set", change)]
    done = call("predict", "out", "abc", "--json", *changes)
    assert len(json.loads(done.stdout)["outputs"]) == 3
    done = call("look", "out", "abc", "--set", "decode.widht=3")
    assert done.returncode == 1
    assert done.stderr.startswith("regard: command line: decode.widht: unknown setting")


def test_predict_answers_line_by_line(call):
    lines = "ab\n\nabc\n"
    plain = call("predict", "out", stdin=lines)
    assert plain.returncode == 0, plain.stderr
    answers = plain.stdout.splitlines()
    assert len(answers) == 3
    rows = [
        json.loads(line)
        for line in call("predict", "out", "--json", stdin=lines).stdout.splitlines()
    ]
    assert [rows[0]["source"], rows[2]["source"]] == ["ab", "abc"]
    assert rows[1] == {"input": "", "text": ""}
    assert [row["text"] for row in rows] == answers
    assert call("predict", "out").stdout == ""


def test_look_shows_the_map(call):
    done = call("look", "out", "abc", "--target", "cba")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "abc -> cba"
    assert lines[2].split() == ["a", "b", "c", "</s>"]
    assert [line.split()[0] for line in lines[3:7]] == ["c", "b", "a", "</s>"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train", "config.toml", "train.step=5"], "train.step: unknown setting; did you mean"),
        (["train", "config.toml", "train.steps=many"], "train.steps"),
        (["train", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (["train", "config.toml", 'data.train="gone.tsv"', "--run", "x"], "gone.tsv"),
        (
            ["train", "config.toml", *SMALL, "seed=9", "--run", "out"],
            "holds a run with other settings",
        ),
        (["score", "nowhere"], "nowhere: is not a run"),
        (["score", "out", "--split", "tset"], "did you mean 'test'"),
        (["predict", "."], ".: the run has no weights.safetensors; restore this file"),
        (["init", "translat"], "translat"),
    ],
)
def test_what_goes_wrong_is_one_line(call, words: list[str], says: str):
    done = call(*words)
    assert done.returncode == 1, done.stderr
    last = [line for line in done.stderr.splitlines() if line.startswith("regard: ")]
    assert len(last) == 1
    assert says in last[0]
    assert "Traceback" not in done.stderr
