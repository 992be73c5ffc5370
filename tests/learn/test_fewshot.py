"""A learner that is shown points of classes which it has never met."""

from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer


def test_it_learns_to_compare(tmp_path, unchecked):
    """Three ways, by chance 33 %; what it knows of an episode, it has looked up."""
    data = {"ways": 3, "dim": 4, "noise": 0.2, "eval_episodes": 300}
    model = {"kind": "snail", "blocks": ["A(16, 16)", "TC(16)", "A(16, 16)"]}
    train = {"steps": 250, "examples_per_batch": 32, "queries": 3, "learning_rate": 0.005}
    settings = {"task": "fewshot", "seed": 1, "data": data, "model": model, "train": train}
    list(Trainer(resolve_settings(settings), tmp_path / "run", lambda _: None))
    run = Run.load(tmp_path / "run")
    found = run.score("test")
    assert found["accuracy"] > 70, found
    assert found["accuracy"] < found["optimal"] + 3 * found["within"]
