"""Where settings would have ended a training, as Fit ends it."""

from pathlib import Path

import pytest

from regard.config.load import resolve
from regard.train.compare import end_of
from regard.train.fit import Fit
from regard.train.log import place, read

LONG = {"steps": 9}
ENDS = [{"steps": 4}, {"epochs": 1}, {"epochs": 2}, {"steps": 8, "patience": 1}]
TRAIN = {"sentences_per_batch": 4, "validate_every": 2, "accumulate": 2, "learning_rate": 0.3}


def logged(folder: Path, end: dict[str, int]) -> tuple[list[dict], object]:
    settings = resolve(
        {
            "task": "classify",
            "data": {
                "kind": "planted",
                "size": 24,
                "held_out": 4,
                "classes": 2,
                "fewest": 2,
                "most": 3,
            },
            "text": {"kind": "words"},
            "model": {"kind": "birnn", "dim": 4, "hidden_dim": 4},
            "train": {**TRAIN, **end},
        }
    )
    for _ in Fit(settings, folder).events():
        pass
    return read(folder), settings.train


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_the_end_is_where_a_training_ends(tmp_path: Path, end: dict[str, int]):
    log, train = logged(tmp_path / "run", end)
    last = place(log[-1])
    assert last < LONG["steps"]
    assert end_of(train, log) == last
    longer, _ = logged(tmp_path / "run", LONG)
    assert place(longer[-1]) == LONG["steps"]
    assert end_of(train, longer) == last
    assert end_of(train, longer[:1]) is None
