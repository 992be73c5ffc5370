"""`fold` on the command line: from a config to what residues and pairs looked at."""

import json
from pathlib import Path

import pytest

from regard.cli.app import main
from regard.view.attention_map import AttentionMap

PROTEINS = """
task = "fold"
data = { kind = "proteins", train = "a.fasta", dev = "a.fasta", test = "a.fasta" }
model = { kind = "msa", dim = 8, pair_dim = 4, heads = 2, pair_heads = 1, head_dim = 4, layers = 2 }
train.steps = 4
train.examples_per_batch = 4
train.max_tokens = 8
train.validate_every = 2
train.metric = "accuracy"
"""
POINTS = """
task = "fold"
data = { kind = "points", size = 30, held_out = 5, min_points = 5, max_points = 7 }
model = { kind = "msa", dim = 4, pair_dim = 8, heads = 1, pair_heads = 2, head_dim = 4, layers = 1 }
train = { steps = 4, examples_per_batch = 4, validate_every = 2, metric = "mae" }
"""
CHANGES = {
    "birnn": "model={ kind = 'birnn', dim = 4, hidden_dim = 4 }",
    "bert": "model={ kind = 'bert', dim = 8, heads = 2, layers = 1, max_positions = 6 }",
}
TABLE = '{"distances": [[0, 3.8, null], [3.8, 0, 4], [null, 4, 0]], "sequence": "MKV"}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of each target, and of other encoders."""
    found = tmp_path_factory.mktemp("fold")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        Path("a.fasta").write_text(
            ">a\nMKVLAAGDEKLV\nCHHHHHHCCEEC\n>b\nGGTVEVEK\nGSTVEIEK\nCCEEEEEC\n" * 3
        )
        for name in ("msa", *CHANGES, "points"):
            Path(f"{name}.toml").write_text(POINTS if name == "points" else PROTEINS)
            changes = [CHANGES[name]] if name in CHANGES else []
            with pytest.raises(SystemExit) as end:
                main(["train", f"{name}.toml", *changes, "--run", name])
            assert end.value.code == 0
    return found


def test_a_config_for_every_setting(command, tmp_path):
    written = command("init", "fold")
    for name in (
        "triangles",
        "pair_dim",
        "contact_distance",
        "max_tokens",
        "max_relative_position",
        "states",
    ):
        assert name in written
    (tmp_path / "all.toml").write_text(written)
    given = ", ".join(f"{split} = 'a.fasta'" for split in ("train", "dev", "test"))
    data = f"data={{ kind = 'proteins', {given} }}"
    assert "residues" in command("check", str(tmp_path / "all.toml"), data)


def test_what_check_tells(command):
    shown = command("check", "msa.toml")
    for line in ("residues", "aligned sequences", "label H", "read in several windows"):
        assert line in shown
    found = json.loads(command("check", "msa.toml", "--json"))
    train = found["splits"]["train"]
    assert (train["texts"], train["residues"], train["aligned"]) == (6, 60, 3)
    assert train["labels"] == {"E": 21, "H": 18, "C": 21} or sum(train["labels"].values()) == 60
    assert any("also in train" in line for line in found["warnings"])
    birnn = json.loads(command("check", "birnn.toml", CHANGES["birnn"], "--json"))
    assert any("reads no aligned sequences" in line for line in birnn["warnings"])
    points = json.loads(command("check", "points.toml", "head.max_distance=9", "--json"))
    assert points["splits"]["train"]["texts"] == 30
    assert 0.1 < points["splits"]["train"]["far"] < 0.6
    assert any("beyond head.max_distance = 9" in line for line in points["warnings"])
    few = command("check", "points.toml", "train.max_tokens=3", code=1)
    assert "train: no example is left; is the data empty, or train.max_tokens small?" in few


@pytest.mark.parametrize("name", ["msa", "birnn", "bert"])
def test_states_are_scored_and_told(name, command):
    found = json.loads(command("score", name, "--json"))
    assert 0 <= found["accuracy"] <= 100
    assert found["majority"] == pytest.approx(100 * 21 / 60)
    assert found["accuracy_signature"].startswith("Q3|")
    lines = command("predict", name, stdin="mkvlaagdek\nGG GA\n").splitlines()
    sequence, states = lines[0].split("\\n")  # one line for each line
    assert sequence == "MKVLAAGDEK"
    assert len(states) == 10
    assert set(states) <= set("HEC")
    assert [len(part) for part in lines[1].split("\\n")] == [2, 2]
    [line] = command("predict", name, "MKV", "--json").splitlines()
    facts = json.loads(line)
    assert facts["sequence"] == "MKV"
    assert [max(p, key=p.get) for p in facts["probabilities"]] == list(facts["states"])


def test_in_a_terminal_states_have_colours(command, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = command("predict", "msa", "MKVLAAGDEK")
    assert shown.startswith("1     MKVLAAGDEK\n      ")


def test_what_residues_looked_at(command, tmp_path):
    shown = command("look", "msa", "MKVLAAGDEK")
    for part in ("layer 1", "layer 2", "M1", "the first 8 residues", "weight:"):
        assert part in shown
    command("look", "msa", "MKVLA", "--save", str(tmp_path / "map.npz"))
    seen = AttentionMap.load(tmp_path / "map.npz")
    assert [layer.name for layer in seen.layers] == [
        "encoder.blocks.0.rows.look",
        "encoder.blocks.1.rows.look",
    ]
    assert seen.layers[0].weights.shape == (2, 5, 5)
    assert list(seen.queries.tokens) == ["M1", "K2", "V3", "L4", "A5"]
    assert "layer 1" in command("look", "bert", "MKVLA")
    assert "model BiRnn has no attention to observe" in command("look", "birnn", "MKV", code=1)


def test_distances_are_scored_told_and_shown(command, tmp_path):
    found = json.loads(command("score", "points", "--json"))
    assert found["mae"] > 0
    assert found["mae_bounds"] > 0
    assert 0 <= found["contacts_fifth"] <= 100
    told = json.loads(command("predict", "points", stdin=TABLE + "\n"))["distances"]
    assert (told[0][1], told[1][2]) == (3.8, 4.0)
    assert told[0][2] == told[2][0] > 0
    facts = json.loads(command("predict", "points", TABLE, "--json"))
    assert [1, 2] in facts["contacts"]
    shown = command("look", "points", TABLE)
    for part in ("3 points, 1 distances predicted", "given", "contacts", "1: starts", "weight:"):
        assert part in shown
    command("look", "points", TABLE, "--save", str(tmp_path / "map.json"))
    seen = AttentionMap.load(tmp_path / "map.json")
    assert list(seen.queries.tokens) == ["M1", "K2", "V3"]


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (("predict", "msa", "MK1"), "input 1: residue 3 is '1'; give letters"),
        (
            ("predict", "msa", "MKV MK"),
            "input 1: an aligned sequence has 2 positions, but the first has 3",
        ),
        (("look", "msa", "M-V"), "TEXT: the first sequence has a gap at 2; remove the column"),
        (("predict", "points", "[1]"), "input 1: expected an object with either points or distan"),
        (("look", "points", "{}"), "TEXT: expected an object with either points or distances"),
        (
            ("predict", "points", json.dumps({"points": [[0, 0, n] for n in range(130)]})),
            "input 1: 130 points, but train.max_tokens = 128; give fewer",
        ),
        (
            ("train", "points.toml", CHANGES["bert"]),
            "model.kind = 'bert' has no states of pairs; take 'msa'",
        ),
        (("train", "msa.toml", "train.metric=mae"), "train.metric = 'mae' is not for data.kind"),
        (
            ("train", "msa.toml", "head.contact_distance=30"),
            "min_distance = 2.0, contact_distance = 30.0 and max_distance =",
        ),
        (
            ("train", "msa.toml", "data={ kind = 'public', name = 'uci_structure', states = 8 }"),
            "states = 8: uci_structure has 3 of them",
        ),
        (("look", "msa", "MKV", "--target", "HHH"), "--target does not support the task fold"),
    ],
)
def test_bad_input_is_one_line(words, want, command):
    output = command(*words, code=1).strip()
    assert want in output
    assert "\n" not in output
