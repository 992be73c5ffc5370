"""Many threads on one run give the answers of one thread, and global generators stay alone."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.attention.observe import intervene, named_attentions, zero
from regard.data.build import build_corpus
from regard.errors import InputError
from regard.run import Run

THREADS, CALLS = 16, 200
TINY: dict[str, Any] = {
    "data": {"kind": "dates", "size": 12, "held_out": 6, "languages": ["en"]},
    "text": {"kind": "characters"},
    "decode": {"kind": "greedy", "max_length": 3},
}
MODELS = {
    "rnnsearch": {"kind": "rnnsearch", "dim": 4, "hidden_dim": 4, "init": "scaled"},
    "transformer": {"kind": "transformer", "dim": 4, "heads": 2, "layers": 1},
}


@pytest.fixture(params=MODELS)
def run(request: pytest.FixtureRequest) -> Run:
    settings = regard.resolve_settings({**TINY, "model": MODELS[request.param]})
    run = Run.create(settings, build_corpus(settings.data))
    run.model.eval()
    return run


def answer(run: Run, records: list[dict[str, Any]], number: int) -> object:
    """Predict, look, or predict with edited attention, by the number of the call."""
    record = records[number % len(records)]
    match number % 3:
        case 0:
            return run(record).as_dict()
        case 1:
            return [layer.weights.tolist() for layer in run.attention(record).layers]
        case _:
            with intervene(run.model, dict.fromkeys(named_attentions(run.model), zero())):
                return run(record).as_dict()


def test_many_threads_answer_as_one(run: Run):
    records = run.read_split("test")
    expected = {number: answer(run, records, number) for number in range(3 * len(records))}
    assert expected[2] != expected[0]  # an edit does change the answer
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda number: answer(run, records, number), range(CALLS)))
    different = [n for n in range(CALLS) if answers[n] != expected[n % len(expected)]]
    assert different == []
    assert all(not attention.hooks for attention in named_attentions(run.model).values())


def test_replicas_answer_as_one_thread(run: Run):
    """Numbers may differ in their last digits, because batches have other sizes."""
    records = (run.read_split("test") * 8)[:40]

    def texts(replicas: int) -> list[str]:
        return [prediction.text for prediction in run.use_replicas(replicas).predict(records)]

    expected = texts(1)
    assert texts(3) == expected
    with intervene(run.model, dict.fromkeys(named_attentions(run.model), zero())):
        assert texts(3) == texts(1) != expected


def test_replicas_need_a_task_that_writes(run: Run, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match="replicas must be 1 or more, not 0"):
        run.use_replicas(0)
    monkeypatch.setattr(type(run.task), "decodes_in_replicas", False)
    with pytest.raises(InputError, match="task translate does not decode in replicas"):
        run.use_replicas(2)


def generator_states() -> tuple[object, ...]:
    """Return the states of torch and numpy; beartype, which only tests use, draws from `random`."""
    numpy_state = np.random.get_state()  # noqa: NPY002 (the global generator of a user)
    return torch.get_rng_state().tolist(), str(numpy_state)


def test_global_generators_are_left_alone(tmp_path: Path):
    before = generator_states()
    train = {"steps": 2, "validate_every": 1, "examples_per_batch": 4}
    settings = regard.resolve_settings({**TINY, "model": MODELS["rnnsearch"], "train": train})
    for _ in regard.Trainer(settings, tmp_path):
        assert generator_states() == before
    run = Run.load(tmp_path)
    run.predict(["May 1st 2001"])
    run.score("test")
    assert generator_states() == before
