"""A small machine that learns to copy, and how it does it."""

from regard.attention.observe import intervene, zero
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer


def test_a_copier_learns_by_writing(tmp_path, unchecked):
    """A feed-forward controller has no state: what it tells of 18 coins, it has written before."""
    data = {"size": 3000, "held_out": 40, "width": 6, "max_vectors": 3, "test_sizes": [3]}
    model = {"kind": "ntm", "controller": "feedforward", "dim": 48, "slots": 8, "slot_dim": 10}
    train = {"steps": 500, "examples_per_batch": 16, "learning_rate": 0.005}
    settings = {"task": "copy", "seed": 3, "data": data, "model": model, "train": train}
    list(Trainer(resolve_settings(settings), tmp_path / "run", lambda _: None))
    run = Run.load(tmp_path / "run")
    found = run.score("test")
    assert found["bits_3"] < 9, found
    with intervene(run.model, {"writer": zero()}):
        assert run.score("test")["bits_3"] > 17.9
