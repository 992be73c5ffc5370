"""Where settings would have ended a training, as Fit ends it."""

from pathlib import Path

import pytest

from regard.explain.comparison import final_step
from regard.tasks.load import resolve_settings
from regard.training.log import entry_step, read_log
from regard.training.trainer import Trainer

LONG = {"steps": 9}
ENDS = [{"steps": 4}, {"epochs": 1}, {"epochs": 2}, {"steps": 8, "patience": 1}]
TRAIN = {"examples_per_batch": 4, "validate_every": 2, "accumulate": 2, "learning_rate": 0.3}


def logged(folder: Path, end: dict[str, int]) -> tuple[list[dict], object]:
    settings = resolve_settings(
        {
            "task": "classify",
            "data": {
                "kind": "planted",
                "size": 24,
                "held_out": 4,
                "classes": 2,
                "min_sentences": 2,
                "max_sentences": 3,
            },
            "text": {"kind": "words"},
            "model": {"kind": "birnn", "dim": 4, "hidden_dim": 4},
            "train": {**TRAIN, **end},
        }
    )
    for _ in Trainer(settings, folder):
        pass
    return read_log(folder), settings.train


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_the_end_is_where_a_training_ends(tmp_path: Path, end: dict[str, int]):
    log, train = logged(tmp_path / "run", end)
    last = entry_step(log[-1])
    assert last < LONG["steps"]
    assert final_step(train, log) == last
    longer, _ = logged(tmp_path / "run", LONG)
    assert entry_step(longer[-1]) == LONG["steps"]
    assert final_step(train, longer) == last
    assert final_step(train, longer[:1]) is None
