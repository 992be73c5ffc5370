"""`fewshot` on the command line: from a config to what the query looked at."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import regard as package
from regard.cli.app import main
from regard.tasks.load import parse_settings
from regard.training.loop import Step
from regard.training.trainer import Trainer

POINTS = """
task = "fewshot"
data = { ways = 2, shots = 2, dim = 2, eval_episodes = 30 }
model = { kind = "snail", blocks = ["A(4, 4)", "TC(4)", "A(4, 4)"] }
train = { steps = 4, examples_per_batch = 4, queries = 3, vary_shots = true, validate_every = 2 }
"""
IMAGES = """
task = "fewshot"
embed = { layers = 2, hidden_dim = 4, dim = 4 }
model = { kind = "snail", blocks = ["TC(4)", "A(4, 4)"] }
train = { steps = 2, examples_per_batch = 4, queries = 2, validate_every = 1 }
[data]
kind = "classes"
train = "faces"
ways = 2
image_size = [8, 8]
held_out = 0.34
eval_episodes = 20
"""
ASKED = '{"support": {"a": [[0, 1]], "b": [[1, 0]]}, "query": [0.1, 1]}'
SEEN = "support\tfaces/face0/0.png"


def drawn(folder: Path, names: list[str], each: int) -> None:
    chance = np.random.default_rng(1)
    for name in names:
        (folder / name).mkdir(parents=True)
        for number in range(each):
            pixels = chance.integers(0, 255, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of points, and one of images."""
    found = tmp_path_factory.mktemp("fewshot")
    drawn(found / "faces", [f"face{n}" for n in range(9)], 3)
    drawn(found / "support", ["ada", "ben"], 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        for name, text in (("points", POINTS), ("images", IMAGES), ("lstm", POINTS)):
            Path(f"{name}.toml").write_text(text)
            changes = ["model={ kind = 'lstm', dim = 8 }"] if name == "lstm" else []
            with pytest.raises(SystemExit) as end:
                main(["train", f"{name}.toml", *changes, "--run", name])
            assert end.value.code == 0
    return found


def test_a_config_for_every_setting(command, tmp_path):
    written = command("init", "fewshot")
    assert 'kind = "prototypes"' in written
    assert "# dim = (not set)" in written
    (tmp_path / "all.toml").write_text(written)
    output = command("check", str(tmp_path / "all.toml"), "data.eval_episodes=500")
    assert "% correct by nearest mean" in output
    assert "No warnings." in output


def test_the_doctor(command):
    found = json.loads(command("check", "images.toml", "data.dev=faces", "--json"))
    assert found["splits"]["train"]["classes"] == 6
    assert found["splits"]["train"]["images"] == 18
    assert found["splits"]["test"]["fewest"] == 3
    assert found["splits"]["dev"]["leaked_classes"] == 6
    assert "dev: 6 classes have the name of a class of" in " ".join(found["warnings"])
    assert "test: only 3 classes for episodes of 2, which are all alike" in " ".join(
        found["warnings"]
    )


def test_scores_with_their_interval(command):
    found = json.loads(command("score", "points", "--json"))
    assert found["episodes"] == 30
    share = found["accuracy"] / 100
    assert found["within"] == pytest.approx(196 * (share * (1 - share) / 30) ** 0.5)
    assert 0 < found["nearest"] <= 100
    assert found["optimal"] > 50
    assert found["accuracy_signature"].startswith("accuracy|ways:2|shots:2|queries:1|classes:unse")
    assert "optimal" not in command("score", "images")


def test_support_and_query_in_class_out(command):
    (line,) = command("predict", "points", stdin=f"{ASKED}\n").splitlines()
    assert line in "ab"
    (facts,) = map(
        json.loads, command("predict", "points", "--json", stdin=f"{ASKED}\n").split("\n")[:1]
    )
    assert facts["label"] == line
    assert sum(facts["probabilities"].values()) == pytest.approx(1)
    assert list(facts["probabilities"]) == ["a", "b"]
    for text in (SEEN, "support faces/face0/0.png"):
        assert command("predict", "images", text).strip() in ("ada", "ben")


def test_what_the_query_looked_at(command):
    output = command("look", "images", SEEN)
    assert "ada: 0.png" in output
    assert "(the query)" in output
    assert "%" in output.splitlines()[0]
    assert "Layer 1" in command("look", "points", ASKED)


def test_a_page_and_a_record(command, tmp_path):
    page, record = str(tmp_path / "map.html"), str(tmp_path / "map.npz")
    command("look", "images", SEEN, "--html", page, "--save", record)
    assert Path(page).stat().st_size > 1000
    found = package.AttentionMap.load(record)
    assert found.queries.tokens == ("ada: 0.png", "ben: 0.png", "(the query)")


def test_it_is_resumed_exactly(folder, tmp_path, monkeypatch):
    """With the running means of its norms."""
    monkeypatch.chdir(folder)
    settings = parse_settings(IMAGES, ["train.steps=5", "train.keep_finished=true"])
    list(Trainer(settings, tmp_path / "whole", lambda _: None))
    for steps in (2, 9):
        fit = Trainer(settings, tmp_path / "parts", lambda _: None)
        events = iter(fit)
        for _ in range(steps):
            next((one for one in events if isinstance(one, Step)), None)
        del events
        fit.close()
    one, other = (
        (tmp_path / name / "checkpoints/step-00000005/weights.safetensors").read_bytes()
        for name in ("whole", "parts")
    )
    assert one == other


@pytest.mark.parametrize(
    ("words", "stdin", "why"),
    [
        (["predict", "points"], "x\n", 'standard input:1: a line must be JSON such as {"support"'),
        (["predict", "points"], '{"support": {"a": [[0, 1]]}, "query": [0, 1]}\n', "1 classes in"),
        (
            ["predict", "points"],
            ASKED.replace("[1, 0]", "[1]") + "\n",
            "a point has 1 numbers; give 2",
        ),
        (["predict", "points"], ASKED.replace("[[1, 0]]", "[]") + "\n", "give 1 to 2 examples of"),
        (["predict", "images", "faces\tfaces/face0/0.png"], "", "input 1: 9 classes in the supp"),
        (["predict", "images", "support\tgone.png"], "", "gone.png: there is no such file"),
        (["predict", "images", "gone\tfaces/face0/0.png"], "", "gone: there is no such folder"),
        (["predict", "images", "support"], "", "input 1: a line must be a folder with a folder"),
        (["look", "lstm", ASKED], "", "model Lstm has no attention"),
        (
            ["train", "images.toml", "data.ways=7", "--run", "no"],
            "",
            "train, faces: 3 classes, but an",
        ),
        (
            ["train", "images.toml", "data.shots=3", "--run", "no"],
            "",
            "has 3 images, but 4 are",
        ),
        (["train", "images.toml", "train.queries=9", "--run", "no"], "", "set it to at most 4"),
        (["check", "images.toml", "data.train=gone"], "", "gone: there is no such folder"),
        (["init", "fewshot", "data.ways=1"], "", "data.ways: must be at least 2, not 1"),
        (["init", "fewshot", "train.epochs=1"], "", "epochs are not for episodes, which have no"),
        (["check", "images.toml", "embed.layers=4"], "", "is too small for embed.layers = 4"),
    ],
)
def test_bad_input_is_one_line(words, stdin, why, command):
    output = command(*words, stdin=stdin, code=1)
    assert why in output
    assert output.count("\n") == 1
    assert output.startswith("regard: ")
    assert not Path("no").exists()
