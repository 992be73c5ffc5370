"""`copy` and `recall` on the command line: from a config to what the heads did."""

import json
from pathlib import Path

import pytest

import regard as package
from regard.cli.app import main

COPY = """
task = "copy"
data = { size = 60, held_out = 6, width = 3, max_vectors = 4, test_sizes = [3, 9] }
model = { kind = "ntm", controller = "feedforward", dim = 8, slots = 10, slot_dim = 4 }
train = { steps = 4, examples_per_batch = 8, validate_every = 2 }
"""
RECALL = """
task = "recall"
data.size = 40
data.held_out = 4
data.width = 2
data.vectors_per_item = 2
data.max_items = 3
data.test_sizes = [3, 4]
model = { kind = "ntm", dim = 8, slots = 9, slot_dim = 4, read_heads = 2 }
train = { steps = 2, examples_per_batch = 8 }
"""
ASKED = {"copy": "011 100 001", "recall": "01 10 | 11 00 | 00 00 ? 01 10"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of each task."""
    found = tmp_path_factory.mktemp("bits")
    for name, text in (("copy", COPY), ("recall", RECALL), ("lstm", COPY)):
        (found / f"{name}.toml").write_text(text)
        changes = ["model={ kind = 'lstm', dim = 8 }"] if name == "lstm" else []
        with pytest.raises(SystemExit) as end:
            main(["train", str(found / f"{name}.toml"), *changes, "--run", str(found / name)])
        assert end.value.code == 0
    return found


@pytest.mark.parametrize("task", ["copy", "recall"])
def test_a_config_for_every_setting(task, command, tmp_path):
    written = command("init", task)
    assert f'kind = "{task}"' in written
    (tmp_path / "all.toml").write_text(written)
    small = ["data.size=40", "data.held_out=2", "model.slots=200"]
    output = command("check", str(tmp_path / "all.toml"), *small)
    assert "sequences " in output
    assert "an epoch     3 batches" in output
    assert "No warnings." in output


def test_the_doctor_tells_what_cannot_be_remembered(command):
    output = command("check", "copy.toml", "model.slots=5", "train.max_tokens=8")
    assert "test: sequences of up to 9 vectors do not fit into model.slots = 5" in output
    assert "has more steps than train.max_tokens = 8; raise it" in output
    found = json.loads(command("check", "copy.toml", "--json"))
    assert found["splits"]["test"]["largest"] == 9
    assert found["splits"]["train"]["sequences"] == 60
    assert found["warnings"] == []
    assert "no example is left" in command("check", "copy.toml", "train.max_tokens=2", code=1)


def test_scores_by_size(command):
    found = json.loads(command("score", "copy", "--json"))
    assert found["sequences"] == 12
    assert found["bits_9"] > found["bits_3"] > 0
    assert found["bits"] == pytest.approx((found["bits_3"] + found["bits_9"]) / 2)
    assert found["bits_signature"].startswith("bits|")
    assert 0 <= found["wrong_9"] <= 27
    dev = json.loads(command("score", "copy", "--split", "dev", "--json"))
    assert "bits_9" not in dev
    assert "bits_4 " in command("score", "recall")


@pytest.mark.parametrize("task", ["copy", "recall"])
def test_lines_in_lines_out(task, command):
    text = ASKED[task]
    (line,) = command("predict", task, stdin=f"{text}\n").splitlines()
    (facts,) = map(json.loads, command("predict", task, "--json", stdin=f"{text}\n").splitlines())
    assert facts["text"] == line
    assert facts["target"] == {"copy": text, "recall": "11 00"}[task]
    one, other = (facts[name].replace(" ", "") for name in ("text", "target"))
    assert facts["wrong"] == sum(a != b for a, b in zip(one, other, strict=True))
    assert 0.5 <= facts["confidence"] <= 1


def test_what_the_heads_did(command):
    output = command("look", "copy", ASKED["copy"])
    assert "bits wrong)" in output or "bit wrong)" in output
    assert "Reader, head 1" in output
    assert "Writer, head 1" in output
    for step in ("011", "(end)", "·"):
        assert f"\n{step} " in output
    assert "Reader, head 2" in command("look", "recall", ASKED["recall"])


def test_a_page_and_a_record(command, tmp_path):
    page, record = str(tmp_path / "map.html"), str(tmp_path / "map.npz")
    command("look", "recall", ASKED["recall"], "--html", page, "--save", record)
    assert Path(page).stat().st_size > 1000
    found = package.AttentionMap.load(record)
    assert [(one.name, one.heads, one.kind) for one in found.layers] == [
        ("reader", 2, "memory"),
        ("writer", 1, "memory"),
    ]
    assert found.keys.tokens == tuple(map(str, range(9)))
    assert len(found.queries.tokens) == 9 + 4 + 2
    assert found.title == ASKED["recall"]


@pytest.mark.parametrize(
    ("words", "stdin", "why"),
    [
        (["predict", "copy"], "011\n012\n", "standard input:2: '012' is not a vector of 3 bits"),
        (["predict", "recall"], "01 10\n", "standard input:1: no query; write it as"),
        (["look", "copy", "0110"], "", "TEXT: '0110' is not a vector of 3 bits, as 011"),
        (["look", "lstm", "011"], "", "Lstm has no attention to observe"),
        (["look", "copy", "011", "--target", "1"], "", "--target does not support the task copy"),
        (["init", "copy", "data.test_sizes=[]"], "", "data.test_sizes: must not be empty"),
        (
            ["train", "copy.toml", "data.max_vectors=0"],
            "",
            "data.max_vectors: must be at least 1, not 0",
        ),
        (
            ["train", "copy.toml", "data.min_vectors=5"],
            "",
            "min_vectors must be from 1 to max_vectors (4)",
        ),
        (
            ["train", "copy.toml", "model.max_shift=9", "--run", "no"],
            "",
            "max_shift (9) must be less than",
        ),
        (["train", "copy.toml", "model.layers=2"], "", "kind 'lstm' has it"),
    ],
)
def test_bad_input_is_one_line(words, stdin, why, command):
    output = command(*words, stdin=stdin, code=1)
    assert why in output
    assert output.count("\n") == 1
    assert output.startswith("regard: ")
    assert not Path("no").exists()


def test_another_kind_of_batch(command):
    """The default, sequences of a batch, steps back."""
    output = command("init", "copy", "train.tokens_per_batch=500")
    assert "tokens_per_batch = 500" in output
    assert "# examples_per_batch = (not set)" in output
