"""A small actor that learns to explore: better than chance, and never better than theory."""

from regard.metrics.bandit import optimal_return
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer


def test_an_actor_learns_to_stay_with_what_pays(tmp_path, unchecked):
    """Of two arms and six pulls, 3 by chance and 3.58 at most."""
    data = {"arms": 2, "steps": 6, "held_out": 4000}
    model = {"kind": "snail", "dim": 16, "blocks": ["TC(8)", "A(8, 8)"]}
    train = {
        "steps": 120,
        "rollout_environments": 512,
        "examples_per_batch": 128,
        "learning_rate": 0.01,
    }
    settings = {"task": "bandit", "seed": 2, "data": data, "model": model, "train": train}
    list(Trainer(resolve_settings(settings), tmp_path / "run", lambda _: None))
    run = Run.load(tmp_path / "run")
    found = run.score("test")
    most = optimal_return(2, 6)
    assert most is not None
    assert found["return"] > found["random"] + 0.35, found
    assert found["return"] < most + 3 * found["error"], found
    assert run("1:1 1:1 1:1").action == 0
    assert run("1:0 1:0 1:0").action == 1
    assert run("2:1 2:1 1:0").action == 1
