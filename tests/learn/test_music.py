"""Small trainings on music whose truth is known."""

import json
import math
import random

import pytest

from regard.data.formats.abc_notation import parse_tune
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

TUNE = "X:1\nT:Up\nM:3/4\nL:1/4\nK:G\nGAB|cde|f2d|g3|]\n"


def trained(folder, settings):
    list(Trainer(resolve_settings({"task": "music", **settings}), folder, lambda _: None))
    return Run.load(folder)


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        ({"kind": "roll_rnn", "dim": 32}, 0.05),
        ({"kind": "roll_gpt", "dim": 32, "heads": 2, "layers": 1, "dropout": 0.0}, 0.01),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_coin_and_what_it_decides(tmp_path, model, rate):
    """Chords A and B by a toss, each followed by its own answer: two steps in turn.

    A toss of two chords of one note each costs 2 ln 2, two keys of which none is sure; an answer
    costs nothing. So the best mean is ln 2, the first step included.
    """
    draw = random.Random(0)

    def piece():
        tosses = [draw.random() < 0.5 for _ in range(10)]
        return [step for a in tosses for step in ([[60], [72]] if a else [[64], [76]])]

    for name, count in (("train", 200), ("dev", 40)):
        text = "".join(f"{json.dumps(piece())}\n" for _ in range(count))
        (tmp_path / f"{name}.jsonl").write_text(text)
    data = {name: str(tmp_path / f"{name}.jsonl") for name in ("train", "dev")}
    train = {"steps": 200, "examples_per_batch": 16, "learning_rate": rate, "validate_every": 100}
    settings = {"data": {"kind": "rolls", **data, "held_out": 0.0}, "model": model, "train": train}
    run = trained(tmp_path / "run", settings)
    found = run.score("dev")
    assert found["nll_all"] == pytest.approx(math.log(2), abs=0.06)
    # 20 steps, of which the first is a toss
    assert found["nll"] == pytest.approx(2 * math.log(2) * 9 / 19, abs=0.06)
    assert dict(run.task.next_keys([(60,)], 1))[72] > 0.95


def test_a_tune_by_heart(tmp_path):
    """After enough of the same tune, what is written is that tune: it can be played."""
    (tmp_path / "a.abc").write_text(TUNE * 30)
    data = {"kind": "abc", "held_out": 0.0}
    data |= dict.fromkeys(("train", "dev"), str(tmp_path / "a.abc"))
    train = {"steps": 60, "examples_per_batch": 8, "context_length": 48, "learning_rate": 0.02}
    decode = {"max_length": 100, "temperature": 0.5}
    model = {"kind": "rnnlm", "dim": 16, "hidden_dim": 48}
    settings = {"data": data, "model": model, "train": train, "decode": decode}
    run = trained(tmp_path / "run", settings)
    [new, begun] = run.predict(["", r"X:7\nT:Up\nM: 3/4"])
    assert new.text == TUNE.removesuffix("\n") + "\n"
    assert begun.text == TUNE
    assert len(parse_tune(begun.tune)) == 9
    assert begun.tries >= 1
    music21 = pytest.importorskip("music21")
    read = music21.converter.parse(new.text, format="abc")
    assert [note.pitch.midi for note in read.recurse().notes] == [
        *(67, 69, 71, 72, 74, 76, 78, 74, 79)
    ]
