"""`bandit` on the command line: from a config to where each step looked."""

import json
import re
from pathlib import Path

import pytest

import regard as package
from regard.cli.app import main
from regard.tasks.load import parse_settings
from regard.training.loop import Step
from regard.training.trainer import Trainer

BANDIT = """
task = "bandit"
data = { arms = 3, steps = 4, held_out = 50 }
model = { kind = "snail", dim = 6, blocks = ["A(4, 4)", "TC(4)", "A(4, 4)"] }
train.steps = 4
train.rollout_environments = 16
train.examples_per_batch = 8
train.rollout_epochs = 1
train.validate_every = 2
"""
MDP = """
task = "bandit"
data = { kind = "mdp", states = 3, actions = 2, horizon = 2, episodes = 2, held_out = 30 }
model = { kind = "snail", dim = 6, blocks = ["TC(4)", "A(4, 4)"], dilation = 2 }
train = { steps = 2, rollout_environments = 16, examples_per_batch = 8 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of each kind."""
    found = tmp_path_factory.mktemp("bandit")
    for name, text in (("bandit", BANDIT), ("mdp", MDP), ("lstm", BANDIT)):
        (found / f"{name}.toml").write_text(text)
        changes = ["model={ kind = 'lstm', dim = 8 }"] if name == "lstm" else []
        with pytest.raises(SystemExit) as end:
            main(["train", str(found / f"{name}.toml"), *changes, "--run", str(found / name)])
        assert end.value.code == 0
    return found


def test_a_config_for_every_setting(command, tmp_path):
    written = command("init", "bandit")
    assert 'blocks = ["TC(32)", "TC(32)", "A(32, 32)"]' in written
    (tmp_path / "all.toml").write_text(written)
    output = command("check", str(tmp_path / "all.toml"), "data.held_out=1000")
    for row in (
        "environments +1,000 +1,000",
        "random actions +[45]",
        "return of any learner +6.66",
    ):
        assert re.search(row, output), output
    assert "No warnings." in output


def test_the_doctor(command):
    found = json.loads(command("check", "mdp.toml", "train.rollout_environments=4", "--json"))
    assert found["splits"]["test"]["worlds"] == 30
    assert found["splits"]["test"]["random"] < found["splits"]["test"]["known"]
    assert "optimal" not in found["splits"]["test"]
    assert found["warnings"] == [
        "dev: only 30 environments, so scores may differ by chance; raise data.held_out",
        "test: only 30 environments, so scores may differ by chance; raise data.held_out",
        "train.rollout_environments = 4 is less than a batch of 8; raise it",
    ]


def test_scores_beside_other_players(command):
    found = json.loads(command("score", "bandit", "--json"))
    assert 0 <= found["return"] <= 4
    assert found["error"] > 0
    assert found["worlds"] == 50
    assert {"random", "greedy", "thompson", "known"} <= set(found)
    assert found["optimal"] == pytest.approx(169 / 72)
    assert found["return_signature"] == (
        "return|bandit|actions:3|steps:4|discount:1|act:likeliest|v:1"
    )
    output = command("score", "mdp")
    assert "greedy" not in output
    assert "states:3|horizon:2|actions:2|steps:4" in output


def test_histories_in_choices_out(command):
    lines = command("predict", "bandit", stdin="1:1 2:0 2:1\n\n").splitlines()
    assert len(lines) == 2
    asked = "1:1 2:0 2:1\n"
    (facts,) = map(json.loads, command("predict", "bandit", "--json", stdin=asked).splitlines())
    assert sum(facts["probabilities"].values()) == pytest.approx(1)
    assert lines[0].startswith(f"{facts['action']} ")
    assert facts["history"] == "1:1 2:0 2:1"
    (line,) = command("predict", "mdp", stdin="1 2:0.7 3\n").splitlines()
    assert line[0] in "12"


def test_where_each_step_looked(command):
    output = command("look", "bandit", "1:1 2:0 2:1")
    assert output.startswith("next: ")
    assert output.count("\nLayer ") == 2
    for step in ("(begin)", "1:1", "2:0", "2:1"):
        assert f"\n{step} " in output
    assert "\n2:0.7 3 " in command("look", "mdp", "1 2:0.7 3")


def test_a_page_and_a_record(command, tmp_path):
    page, record = str(tmp_path / "map.html"), str(tmp_path / "map.npz")
    command("look", "bandit", "1:1 2:0", "--html", page, "--save", record)
    assert Path(page).stat().st_size > 1000
    found = package.AttentionMap.load(record)
    assert found.queries.tokens == ("(begin)", "1:1", "2:0")
    assert [(one.heads, one.kind) for one in found.layers] == [(1, "self")] * 2


def test_it_is_resumed_exactly(tmp_path):
    """In the middle of a round, too: what is being learned from is kept."""
    settings = parse_settings(
        BANDIT, ["train.steps=9", "train.rollout_epochs=2", "train.keep_finished=true"]
    )
    list(Trainer(settings, tmp_path / "whole", lambda _: None))
    for steps in (3, 2, 9):
        fit = Trainer(settings, tmp_path / "parts", lambda _: None)
        events = iter(fit)
        for _ in range(steps):
            next((one for one in events if isinstance(one, Step)), None)
        events.close()
        fit.close()
    one, other = (
        (tmp_path / name / "checkpoints/step-00000009/weights.safetensors").read_bytes()
        for name in ("whole", "parts")
    )
    assert one == other


@pytest.mark.parametrize(
    ("words", "stdin", "why"),
    [
        (["predict", "bandit"], "1:1\n4:1\n", "standard input:2: '4:1' is not an action from 1 to"),
        (
            ["predict", "bandit"],
            "1:1 " * 4 + "\n",
            "standard input:1: 4 actions, but an environment ends",
        ),
        (["predict", "mdp"], "1 2:1\n", "standard input:1: no current state at the end; end with"),
        (["look", "bandit", "1"], "", "TEXT: '1' is not an action from 1 to 3 and its reward"),
        (["look", "lstm", "1:1"], "", "model Lstm has no attention to observe"),
        (["look", "lstm", "1:1", "--html", "x.html"], "", "model Lstm has no attention to observe"),
        (
            ["look", "bandit", "1:1", "--target", "1"],
            "",
            "--target does not support the task bandit",
        ),
        (
            ["score", "bandit", "--split", "train"],
            "",
            "data: has no split 'train', but dev, test; give one of these (--split test)",
        ),
        (["init", "bandit", "data.arms=1"], "", "data.arms: must be at least 2, not 1"),
        (["init", "bandit", "model.dilation=3"], "", "model.dilation: must be one of 1, 2, not 3"),
        (
            ["init", "bandit", "train.tokens_per_batch=9"],
            "",
            "not for environments; set examples_p",
        ),
        (
            ["train", "bandit.toml", "model.blocks=['B(2)']", "--run", "no"],
            "",
            "unknown block 'B(2)'; write TC",
        ),
    ],
)
def test_bad_input_is_one_line(words, stdin, why, command):
    output = command(*words, stdin=stdin, code=1)
    assert why in output
    assert output.count("\n") == 1
    assert output.startswith("regard: ")
    assert not Path("no").exists()
