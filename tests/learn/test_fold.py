"""Small trainings on proteins and points whose truth is known."""

import json
import random

import pytest

from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

SMALL = {"dim": 16, "pair_dim": 8, "heads": 2, "pair_heads": 2, "head_dim": 8, "layers": 1}
STILL = {"dropout": 0.0, "pair_dropout": 0.0}


def trained(folder, settings):
    list(Trainer(resolve_settings({"task": "fold", **settings}), folder, lambda _: None))
    return Run.load(folder)


def written(path, count, seed):
    """A state is E where the residue two places before is A or G, else H at K, else C."""
    draw = random.Random(seed)
    with path.open("w") as file:
        for _ in range(count):
            text = "".join(draw.choices("AGKLV", k=draw.randint(10, 30)))
            states = [
                "E" if n > 1 and text[n - 2] in "AG" else "H" if text[n] == "K" else "C"
                for n in range(len(text))
            ]
            file.write(f">x\n{text}\n{''.join(states)}\n")
    return str(path)


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        ({"kind": "msa", **SMALL, **STILL, "triangles": "product"}, 0.01),
        ({"kind": "birnn", "dim": 16, "hidden_dim": 16, "pooling": "mean"}, 0.02),
    ],
    ids=["msa", "birnn"],
)
def test_a_state_that_hangs_on_a_neighbour(tmp_path, model, rate):
    """Whoever does not know how far residues are apart reaches about 70 percent."""
    data = {s: written(tmp_path / f"{s}.fa", n, s) for s, n in (("train", 150), ("dev", 30))}
    train = {"steps": 90, "examples_per_batch": 16, "learning_rate": rate, "max_tokens": 20}
    train |= {"validate_every": 45, "metric": "accuracy"}
    data = {"kind": "proteins", **data, "held_out": 0.0}
    run = trained(tmp_path / "run", {"data": data, "model": model, "train": train})
    found = run.score("dev")
    assert found["accuracy"] > 97
    assert found["majority"] < 60


def test_an_alignment_tells_what_a_sequence_does_not(tmp_path):
    """The first sequence is always the same; the state is H where another one has changed."""
    draw = random.Random(0)
    for name, count in (("train", 200), ("dev", 40)):
        with (tmp_path / f"{name}.jsonl").open("w") as file:
            for _ in range(count):
                other = "".join(draw.choice("AAG") for _ in range(8))
                states = "".join("H" if letter == "G" else "C" for letter in other)
                whole = {"sequence": "A" * 8, "states": states, "alignment": ["A" * 8, other]}
                file.write(json.dumps(whole) + "\n")
    data = {s: str(tmp_path / f"{s}.jsonl") for s in ("train", "dev")}
    settings = {
        "data": {"kind": "proteins", **data, "held_out": 0.0},
        "model": {"kind": "msa", **SMALL, **STILL, "triangles": "none", "layers": 2},
        "train": {"steps": 80, "examples_per_batch": 16, "learning_rate": 0.01},
    }
    run = trained(tmp_path / "run", settings)
    assert run.score("dev")["accuracy"] > 97


def test_points_on_a_line_are_told_by_their_neighbours(tmp_path):
    """Of points in a row, the missing sides of triangles are sums or differences of the others."""
    draw = random.Random(0)
    for name, count in (("train", 400), ("dev", 50)):
        with (tmp_path / f"{name}.jsonl").open("w") as file:
            for _ in range(count):
                points = [[round(12 * draw.random(), 2), 0, 0] for _ in range(6)]
                file.write(json.dumps({"points": points}) + "\n")
    data = {s: str(tmp_path / f"{s}.jsonl") for s in ("train", "dev")}
    settings = {
        "data": {"kind": "distances", **data, "visible_fraction": 0.6, "held_out": 0.0},
        "model": {
            "kind": "msa",
            **SMALL,
            **STILL,
            "dim": 4,
            "pair_dim": 16,
            "max_relative_position": 0,
        },
        "head": {
            "bins": 24,
            "min_distance": 0.0,
            "max_distance": 12.0,
            "contact_distance": 3.0,
            "dropout": 0.0,
        },
        "train": {"steps": 150, "examples_per_batch": 32, "learning_rate": 0.01},
    }
    run = trained(tmp_path / "run", settings)
    found = run.score("dev")
    assert found["mae"] < 0.75 * found["mae_bounds"]  # what triangles bound is where it began
    assert found["contacts_fifth"] > 80
