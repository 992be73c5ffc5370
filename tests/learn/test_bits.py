"""Small machines that learn to copy, and how they do it."""

import pytest

from regard.config.load import resolve
from regard.train.fit import Fit
from regard.train.run import Run


@pytest.mark.parametrize("seed", [1, 2])
def test_a_copier_learns_from_short_ones_and_copies_longer_ones(tmp_path, seed):
    data = {"size": 4000, "held_out": 40, "width": 4, "longest": 4, "tested": [4, 6]}
    model = {"kind": "ntm", "controller": "feedforward", "dim": 32, "slots": 12, "slot_dim": 8}
    train = {"steps": 500, "sentences_per_batch": 16, "learning_rate": 0.005}
    settings = {"task": "copy", "seed": seed, "data": data, "model": model, "train": train}
    fit = Fit(resolve(settings), tmp_path / "run", lambda _: None)
    list(fit.events())
    run = Run.load(tmp_path / "run")
    found = run.score(run.corpus().read("test"))
    print(found)
    assert found["bits_4"] < 2  # of 16
