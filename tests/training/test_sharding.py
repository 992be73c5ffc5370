"""Sharded training: the same results, checkpoints for any number of processes, refusals."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.processes import run_in_group
from torch import nn

import regard.training.distributed.sharding  # noqa: F401 (the forked processes need it)
from regard.config.settings import Settings
from regard.errors import InputError
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.training.distributed.group import WorkerGroup
from regard.training.distributed.shardable import check_shardable
from regard.training.log import read_log
from regard.training.prepare import create_run, prepare_training
from regard.training.trainer import Trainer, Validation

STEPS, STOPPED_AT = 8, 5
TINY: dict[str, Any] = {
    "data": {"kind": "dates", "size": 40, "held_out": 4, "languages": ["en"]},
    "model": {"kind": "transformer", "dim": 6, "heads": 2, "layers": 1, "activation": "gelu"},
    "train": {"steps": STEPS, "examples_per_batch": 5, "validate_every": 4, "save_every": 3}
    | {"keep_finished": True, "optimizer": {"kind": "adam", "eps": 1e-6}, "accumulate": 2}
    | {"ema": 0.9, "metric": "exact"},
    "decode": {"kind": "greedy", "max_length": 12},
}


def settings(sharding: str, **train: object) -> Settings:
    model = {**TINY["model"], "dropout": 0.0}
    table = {**TINY["train"], "sharding": sharding, **train}
    return resolve_settings({**TINY, "model": model, "train": table})


def train(
    group: WorkerGroup | None, given: Settings, folder: Path, stop: int | None = None
) -> None:
    """Train until step `stop`; None: to the end."""
    trainer = Trainer(given, folder, group=group)
    for event in trainer:
        if not isinstance(event, Validation) and event.number == stop:
            break
    trainer.close()


def train_in_parts(group: WorkerGroup, folder: Path) -> None:
    """Train four runs on several processes, some of them only in part."""
    full, none = settings("full"), settings("none")
    train(group, full, folder / "sharded")
    train(group, full, folder / "resumed", STOPPED_AT)
    train(group, full, folder / "resumed")
    train(group, full, folder / "continued-alone", STOPPED_AT)
    train(group, full, folder / "begun-alone")
    train(group, none, folder / "begun-whole", STOPPED_AT)
    train(group, full, folder / "begun-whole")


def test_sharded_or_not_on_one_process_or_two(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("regard.kernels.linear.MIN_PACKED_SIZE", 1)  # also in the processes
    train(None, settings("none"), tmp_path / "alone")
    train(None, settings("full"), tmp_path / "begun-alone", STOPPED_AT)
    run_in_group(partial(train_in_parts, folder=tmp_path), tmp_path / "output.txt")
    train(None, settings("none"), tmp_path / "continued-alone")

    expected = read_log(tmp_path / "alone")
    for name in ("sharded", "resumed", "continued-alone", "begun-alone", "begun-whole"):
        log = read_log(tmp_path / name)
        assert len(log) == len(expected) == STEPS + 2
        for ours, other in zip(log, expected, strict=True):
            assert ours["loss"] == pytest.approx(other["loss"], abs=1e-5), name
            assert ours.get("metric") == other.get("metric")
        assert_close_files(tmp_path / name, tmp_path / "alone")
    lines = ["2019-07-04", "4 July 2019"]
    alone, sharded = (Run.load(tmp_path / name).predict(lines) for name in ("alone", "sharded"))
    assert [p.text for p in alone] == [p.text for p in sharded]
    for path in (tmp_path / "sharded").rglob("*.safetensors"):
        copy = tmp_path / "resumed" / path.relative_to(tmp_path / "sharded")
        if copy.exists():  # a stop leaves a checkpoint more, and another one is removed for it
            assert path.read_bytes() == copy.read_bytes()
    assert checkpoint_bytes(tmp_path / "sharded") == checkpoint_bytes(tmp_path / "resumed")


def assert_close_files(run: Path, other: Path) -> None:
    last = Path("checkpoints", f"step-{STEPS:08}")
    names = [Path("weights.safetensors")]
    names += [last / f"{group}.safetensors" for group in ("weights", "optimizer", "average")]
    for name in names:
        ours, expected = load_file(run / name), load_file(other / name)
        assert ours.keys() == expected.keys()
        for key, tensor in ours.items():
            torch.testing.assert_close(tensor, expected[key], atol=1e-4, rtol=0)


def checkpoint_bytes(run: Path) -> dict[str, bytes]:
    """Return the files of the last checkpoint."""
    return {p.name: p.read_bytes() for p in (run / "checkpoints" / f"step-{STEPS:08}").iterdir()}


def finish_and_continue(group: WorkerGroup, folder: Path) -> None:
    options = {"ema": None, "keep_finished": False, "keep_checkpoints": 2}
    averaged = settings("full", average_checkpoints=2, **options)
    train(group, averaged, folder / "averaged")
    given = settings("full", **options)
    train(group, given, folder / "finished")
    train(group, settings("full", **{**options, "steps": STEPS + 2}), folder / "finished")


def test_averages_and_a_finished_training_that_is_continued(tmp_path: Path):
    options = {"ema": None, "keep_finished": False, "keep_checkpoints": 2}
    train(None, settings("none", average_checkpoints=2, **options), tmp_path / "alone")
    run_in_group(partial(finish_and_continue, folder=tmp_path), tmp_path / "output.txt")
    ours, expected = (
        load_file(tmp_path / name / "weights.safetensors") for name in ("averaged", "alone")
    )
    for key, tensor in ours.items():
        torch.testing.assert_close(tensor, expected[key], atol=1e-4, rtol=0)
    assert not any((tmp_path / "averaged" / "checkpoints").iterdir())
    assert read_log(tmp_path / "finished")[-1]["number"] == STEPS + 2
    assert Run.load(tmp_path / "finished")("2019-07-04").text is not None


def test_what_cannot_be_sharded_is_refused():
    recurrent = {"kind": "rnnsearch", "dim": 4, "hidden_dim": 4}
    run, corpus = create_run(resolve_settings({**TINY, "model": recurrent}))
    given = run.settings.train.model_copy(update={"sharding": "full"})
    run.settings = run.settings.model_copy(update={"train": given})
    with pytest.raises(InputError) as error:
        prepare_training(run, corpus)
    assert str(error.value) == (
        'train.sharding: RnnSearch has no stack of blocks; use train.sharding = "none"'
    )
    run, corpus = create_run(settings("full", compile=True))
    with pytest.raises(InputError, match=r"^train.sharding: a compiled model cannot be sharded; "):
        prepare_training(run, corpus)


def test_weights_that_cannot_be_split_are_refused():
    model = create_run(settings("full"))[0].model
    check_shardable(model)
    model.gain = nn.Parameter(torch.ones(()))
    with pytest.raises(InputError, match=r"gain of Transformer is a single number, which cannot"):
        check_shardable(model)
    del model.gain
    model.encoder.norm = model.decoder.layers[0].self_norm
    with pytest.raises(InputError, match=r"decoder.layers.0.self_norm.weight .* another block; "):
        check_shardable(model)
