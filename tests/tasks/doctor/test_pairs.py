"""The data doctor finds what was put there, and its forecast of memory is near the truth."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from regard.batching.memory_forecast import BatchShape
from regard.tasks.doctor import counts
from regard.tasks.doctor.pairs import check_pairs
from regard.tasks.load import load_settings, resolve_settings
from regard.training.memory_use import MemoryUsage, measure_memory

CONFIG = """
[data]
kind = "files"
train = "train.tsv"
dev = "dev.tsv"
[text]
kind = "words"
[model]
kind = "rnnsearch"
dim = 8
[train]
examples_per_batch = 4
max_tokens = 20
"""
TRAIN = [
    *(f"word{n} of the many\twort{n} von den vielen" for n in range(30)),
    "word1 of the many\twort1 von den vielen",  # 31: again
    "word2 of the many\tetwas anderes hier",  # 32: another target
    "\tleer",  # 33
    "gleich\tgleich",  # 34
    f"{'lang ' * 21}\t{'long ' * 21}",  # 35: over train.max_tokens
    f"schief\t{'viel zu lang ' * 6}",  # 36
    "kaputt\ufffd\tbroken",  # 37
]
DEV = [
    "word3 of the many\twort3 von den vielen",  # a pair of train
    "word4 of the many\tganz anders",  # a source of train
    "niemals zuvor gesehen\tnever seen before",
]


def passing(what, total, records):
    return records


def guess(settings, sizes, shape):
    return MemoryUsage(*[10**6] * 5, shape)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("config.toml").write_text(CONFIG)
    Path("train.tsv").write_text("\n".join(TRAIN) + "\n")
    Path("dev.tsv").write_text("\n".join(DEV) + "\n")
    return load_settings("config.toml")


def test_it_finds_what_was_put_there(settings):
    found = json.loads(json.dumps(check_pairs(settings, passing, guess)))
    train, dev = found["splits"]["train"], found["splits"]["dev"]
    assert (train["pairs"], dev["pairs"]) == (37, 3)
    assert (train["empty_source"], train["identical"], train["duplicates"]) == (1, 1, 1)
    assert (train["ambiguous_sources"], train["replacement_characters"]) == (1, 1)
    assert (train["ratio_outliers"], train["left_out"]) == (1, 1 / 37)
    assert train["places"]["ratio_outliers"] == ["train.tsv:36"]
    assert train["places"]["empty_source"] == ["train.tsv:33"]
    assert train["source"] == {"median": 4, "most": 4, "longest": 21, "unknown": 0.0}
    assert (dev["leaked_pairs"], dev["leaked_sources"]) == (1, 2)
    assert dev["source"]["unknown"] == 3 / 11
    assert found["batches"]["per_epoch"] == 9
    assert 0 < found["batches"]["padding"] < 1
    said = "\n".join(found["warnings"])
    for words in (
        "train: 1 pairs have an empty source (first: train.tsv:33); take them out",
        "dev: 1 of 3 pairs are also in train",
        "train: 2.7% is longer than train.max_tokens = 20; raise it",
        "dev: 27.3% of its source tokens are unknown",
        "first: train.tsv:36); see whether the sides are still aligned",
    ):
        assert words in said


def test_good_data_has_no_warnings():
    settings = resolve_settings(
        {"data": {"kind": "dates", "size": 2000, "held_out": 250}, "model": SMALL}
    )
    assert check_pairs(settings, passing, guess)["warnings"] == []


def test_of_many_pairs_some_are_cut(settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counts, "MAX_TOKENIZED_RECORDS", 10)
    found = check_pairs(settings, passing, guess)
    train = found["splits"]["train"]
    assert train["one_pair_in"] == 4
    assert train["ratio_outliers"] == 1
    assert found["batches"]["per_epoch"] == pytest.approx(10, abs=3)
    assert train["source"]["median"] == 4


def test_nothing_to_train_on(settings):
    small = settings.model_copy(
        update={"train": settings.train.model_copy(update={"max_tokens": 1})}
    )
    Path("train.tsv").write_text("a b c\td e f\n")
    with pytest.raises(ValueError, match="no example is left"):
        check_pairs(small, passing, guess)


SMALL = {"kind": "transformer", "dim": 8, "heads": 2, "layers": 1}
MODELS = {
    "transformer": {"kind": "transformer", "dim": 128, "heads": 8, "layers": 3},
    "rnnsearch": {"kind": "rnnsearch", "dim": 128},
}
SHAPE, SIZES = BatchShape(48, 32, 32), {"source_size": 3000, "target_size": 3000}
# The whole batch, in a process of its own that knows nothing of forecasts.
STEPS = """
    import json, sys, torch
    from pathlib import Path
    from regard.models.catalogue import build_model
    from regard.tasks.loss import cross_entropy

    torch.set_num_threads(1)
    settings, sizes, (rows, s, t) = json.loads(sys.argv[1])
    model = build_model(settings.pop("kind"), {**settings, **sizes})
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    source, target = torch.full((rows, s + 1), 3), torch.full((rows, t + 1), 3)
    valid = torch.ones(rows, t + 1, dtype=torch.bool)
    for _ in range(4):
        optimizer.zero_grad()
        states = model.teacher_forced(model.remember(source, source > 0), target)
        cross_entropy(model.output, states, target, valid).total.backward()
        optimizer.step()
    print(Path("/proc/self/status").read_text())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by /proc")
@pytest.mark.parametrize("kind", ["transformer", pytest.param("rnnsearch", marks=pytest.mark.full)])
def test_the_forecast_is_near_the_truth(kind: str):
    """Within a factor of 1.5 of the peak of a real training, and of its rise above torch alone."""
    settings = resolve_settings({"model": MODELS[kind]})
    found = measure_memory(settings, SIZES, SHAPE)
    asked = json.dumps([MODELS[kind], SIZES, SHAPE])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(STEPS), asked],
        capture_output=True,
        text=True,
        check=True,
    )
    peak = 1024 * int(re.search(r"VmHWM:\s*(\d+)", done.stdout)[1])
    print(f"{kind}: forecast {found.peak / 1e6:.0f} MB, seen {peak / 1e6:.0f} MB; {found}")
    assert found.optimizer >= 2 * found.weights
    assert 1 / 1.5 < found.peak / peak < 1.5
    assert 1 / 1.5 < (found.peak - found.process) / (peak - found.process) < 1.5
