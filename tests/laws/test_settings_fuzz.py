"""Changed settings train, or are refused in one line (benchmarks/fuzz_settings.py)."""

import importlib
from pathlib import Path

import pytest

from regard.errors import InputError
from regard.tasks.load import resolve_settings
from regard.training.prepare import create_run

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COUNT = 60
SMALL_INTEGERS = (0, 1, 2, 3, 5, 7, -1, 10**30)  # larger models would take time


def test_changed_settings_train_or_are_refused(tmp_path, unchecked, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fuzz = importlib.import_module("fuzz_settings")
    monkeypatch.setattr(fuzz, "INTEGERS", SMALL_INTEGERS)
    trials = list(fuzz.try_settings(fuzz.tiny_setups(tmp_path), COUNT, seed=1))
    failures = [trial for trial in trials if trial.outcome not in ("trained", "refused", "slow")]
    assert failures == []
    assert {trial.outcome for trial in trials} >= {"trained", "refused"}


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("seed", 10**30, "seed: must be at most"),
        ("train.accumulate", 10**12, "train.accumulate: must be at most 10"),
        ("text.size", 10**30, "text.size: must be at most"),
        ("model.dim", 10**7, "model: dim = 10000000 is more than 65,536"),
        ("model.normalize", "reinforce", "model.normalize: must be one of"),
        ("decode.length_penalty", 1e30, "length_penalty: must be at most 100"),
    ],
)
def test_values_that_no_training_can_use_are_refused(setting, value, message):
    with pytest.raises(InputError, match=message):
        create_run(resolve_settings({"data": {"kind": "dates"}}, [f"{setting}={value}"]))


def test_models_of_characters_read_words_between_spaces():
    with pytest.raises(InputError, match="split_punctuation is not for elmo"):
        resolve_settings(
            {"task": "pretrain", "model": {"kind": "elmo"}},
            ["text.kind=words", "text.split_punctuation=true"],
        )
