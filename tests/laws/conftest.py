"""Tiny data and tiny models, which the laws of tasks and of models share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from support.examples import RNN, Example, examples, subword_examples

from regard.config.settings import Settings
from regard.tasks.catalogue import TASKS, model_kinds
from regard.tasks.load import resolve_settings
from regard.training.fit import fit_settings

# The settings that keep each kind of model tiny.
MODELS: dict[str, dict[str, Any]] = {
    "encdec": RNN,
    "seq2seq": RNN,
    "rnnsearch": RNN,
    "luong": RNN,
    "transformer": {"dim": 8, "heads": 2, "layers": 1, "hidden_dim": 16},
    "rnmt": {**RNN, "heads": 2},
    "lstmn_fusion": RNN,
    "pointer": RNN,
    "gpt2": {"dim": 8, "heads": 2, "layers": 1, "max_positions": 64},
    "rnnlm": RNN,
    "lstmn": RNN,
    "birnn": RNN,
    "han": RNN,
    "bert": {"dim": 8, "heads": 2, "layers": 1},
    "elmo": {**RNN, "character_dim": 4, "filters": ((1, 4), (2, 4)), "layers": 1},
    "bilstm_crf": {**RNN, "character_dim": 4, "character_output_dim": 4},
    "birnn_attention": RNN,
    "bidaf": {**RNN, "character_dim": 4, "filters": ((3, 4),), "character_output_dim": 4},
    "vit": {"patch_size": 4, "dim": 8, "heads": 2, "layers": 1},
    "show_tell": {"dim": 8, "image_dim": 8, "image_layers": 2, "pooling_layers": 1},
    "show_attend": {"dim": 8, "image_dim": 8, "image_layers": 2, "pooling_layers": 1},
    "roll_rnn": {"dim": 8},
    "roll_gpt": {"dim": 8, "heads": 2, "layers": 1},
    "ntm": {"dim": 8, "slots": 10, "slot_dim": 4},
    "lstm": {"dim": 8},
    "snail": {"blocks": ("A(4, 4)", "TC(4)", "A(4, 4)")},
    "msa": {
        "dim": 8,
        "pair_dim": 4,
        "heads": 2,
        "pair_heads": 1,
        "head_dim": 4,
        "layers": 1,
    },
}


class TinyRun(NamedTuple):
    """A task and a kind of model; `example` names the data in `examples()`."""

    task: str
    kind: str
    example: str


def tiny_runs() -> list[TinyRun]:
    """Return every task with every kind of model that it can use."""
    return [
        TinyRun(task, kind, example_name(task, kind))
        for task in TASKS
        for kind in model_kinds(task)
    ] + [TinyRun("fold", "msa", "fold-distances")]


def covering_runs() -> list[TinyRun]:
    """Return few runs that have every task and every kind of model."""
    chosen, covered = list[TinyRun](), set[str]()
    for tiny in tiny_runs():
        if not {tiny.example, tiny.kind} <= covered:
            chosen.append(tiny)
            covered |= {tiny.example, tiny.kind}
    return chosen


def example_name(task: str, kind: str) -> str:
    return "music-tunes" if task == "music" and not kind.startswith("roll") else task


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with the argument `tiny` every task with every kind of model.

    `tiny_model` is each kind of model once, `tiny_part` each task and each kind at least once.
    """
    if "tiny_part" in metafunc.fixturenames:
        metafunc.parametrize(
            "tiny_part", covering_runs(), ids=lambda run: f"{run.example} {run.kind}"
        )
    if "tiny_model" in metafunc.fixturenames:
        runs = {run.kind: run for run in tiny_runs()}
        metafunc.parametrize("tiny_model", runs.values(), ids=runs)
    if "tiny" in metafunc.fixturenames:
        metafunc.parametrize("tiny", tiny_runs(), ids=lambda run: f"{run.example} {run.kind}")


@pytest.fixture(scope="session")
def task_examples() -> dict[str, Example]:
    return examples()


@pytest.fixture(scope="session")
def encoder_examples() -> dict[str, Example]:
    return subword_examples()


@pytest.fixture(scope="session")
def tiny_settings(tmp_path_factory) -> Callable[[TinyRun, dict[str, Any]], Settings]:
    """Return a function that makes the settings of a tiny run, with more of [train]."""
    folder = tmp_path_factory.mktemp("tiny")

    def build(tiny: TinyRun, train: dict[str, Any]) -> Settings:
        data, _, settings = examples()[tiny.example]
        model: dict[str, Any] = {"kind": tiny.kind, **MODELS[tiny.kind]}
        if tiny.kind == "elmo":
            settings = {**settings, "text": {"kind": "words"}}
        elif tiny.task == "pretrain":
            model["pretrain"] = "both"
        train = {"examples_per_batch": 4, **settings.get("train", {}), **train}
        values = fit_settings(
            tiny.task, data, model, 2, folder / tiny.example, {**settings, "train": train}
        )
        return resolve_settings(values)

    return build
