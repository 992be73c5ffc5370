"""Several processes train like one; a process that dies does not matter; faults are one line."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.processes import exit_code, free_port, set_rank, start
from torch.distributed import HashStore

from regard.cli.app import main
from regard.config.dump import dumps
from regard.errors import InputError
from regard.tasks.load import resolve_settings
from regard.training.distributed.group import (
    WorkerGroup,
    agreed_start,
    buckets,
    decode_outcome,
    encode_error,
)
from regard.training.distributed.launch import launch_workers
from regard.training.log import read_log
from regard.training.prepare import create_run, prepare_training
from regard.training.signals import StopRequested
from regard.training.trainer import Trainer

TINY: dict[str, Any] = {
    "data": {"kind": "dates", "size": 40, "held_out": 4, "languages": ["en"]},
    "model": {"kind": "rnnsearch", "dim": 4, "hidden_dim": 4, "dropout": 0.0},
    "train": {"steps": 100, "examples_per_batch": 5, "validate_every": 50, "save_every": 5}
    | {"keep_finished": True, "learning_rate": 0.3, "optimizer": {"kind": "sgd"}},
}


def train_as_rank(rank: int, port: int, words: list[str]) -> int:
    """Run the command with the environment that torchrun gives to a process."""
    set_rank(rank, 2, port)
    try:
        main(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


def wait_for_step(process: int, folder: Path, step: int, output: Path) -> None:
    while not folder.is_dir() or len(read_log(folder)) < step:
        assert os.waitpid(process, os.WNOHANG) == (0, 0), output.read_text()
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the test finds workers in /proc")
def test_two_processes_that_are_stopped_and_killed_train_like_one(tmp_path: Path):
    (tmp_path / "tiny.toml").write_text(dumps(resolve_settings(TINY)))
    folder, output = tmp_path / "run", tmp_path / "output.txt"
    words = ["train", str(tmp_path / "tiny.toml"), "--run", str(folder), "--threads", "1"]
    port = free_port()
    ranks = [start(partial(train_as_rank, rank, port, words), output) for rank in (0, 1)]
    wait_for_step(ranks[0], folder, 8, output)
    os.kill(ranks[1], signal.SIGTERM)
    assert [exit_code(rank) for rank in ranks] == [143, 143], output.read_text()
    assert output.read_text().count("Stopped after step") == 1

    stopped_at = len(read_log(folder))
    launcher = start(partial(launch_workers, "regard.cli.train_worker", words, 2), output)
    wait_for_step(launcher, folder, stopped_at + 8, output)
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    os.kill(int(children[1]), signal.SIGKILL)
    assert exit_code(launcher) == 0, output.read_text()
    text = output.read_text()
    assert text.count("a process died; all start again (restart 1)") == 1
    assert text.count("dev loss") == 2
    assert text.count("trained for 100 steps") == 1

    list(Trainer(resolve_settings(TINY), tmp_path / "alone"))
    for ours, expected in zip(read_log(folder), read_log(tmp_path / "alone"), strict=True):
        assert ours["loss"] == pytest.approx(expected["loss"], abs=1e-5)
    weights, alone = (
        load_file(run / "weights.safetensors") for run in (folder, tmp_path / "alone")
    )
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, alone[name], atol=1e-4, rtol=0)


def test_an_error_is_one_line_of_one_process(tmp_path: Path):
    (tmp_path / "tiny.toml").write_text(dumps(resolve_settings(TINY)))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").touch()
    words = ["train", str(tmp_path / "tiny.toml"), "--run", str(tmp_path / "run")]
    output, port = tmp_path / "output.txt", free_port()
    ranks = [start(partial(train_as_rank, rank, port, words), output) for rank in (0, 1)]
    assert [exit_code(rank) for rank in ranks] == [1, 1]
    [line] = output.read_text().splitlines()
    assert line.endswith("is not a run (it holds letter.txt); use another folder")


def test_a_task_that_needs_whole_batches_is_refused():
    model = {"kind": "snail", "blocks": ["A(4, 4)", "TC(4)"]}
    run, corpus = create_run(resolve_settings({"task": "bandit", "model": model}))
    with pytest.raises(InputError, match=r"task bandit .*RolloutBatches cannot be split; use one"):
        prepare_training(run, corpus, WorkerGroup(0, 2))


def test_batch_normalization_is_refused():
    run, corpus = create_run(resolve_settings(TINY))
    run.model.add_module("norm", torch.nn.BatchNorm1d(2))
    with pytest.raises(InputError, match=r"norm \(BatchNorm1d\) needs whole batches; use one"):
        prepare_training(run, corpus, WorkerGroup(0, 2))


def test_a_start_does_not_see_the_keys_of_an_earlier_one():
    """The second start comes after one in which rank 2 never came, and rank 1 got no answer."""
    store, names = HashStore(), list[set[str]]()
    store.set("request/1", "of a process that has died")
    for _ in range(2):
        with ThreadPoolExecutor(3) as pool:
            names.append(set(pool.map(lambda rank: agreed_start(store, rank, 3), range(3))))
    assert [len(starts) for starts in names] == [1, 1]
    assert names[0] != names[1]


def test_outcomes_of_the_first_process():
    with pytest.raises(InputError, match="the disk is full"):
        decode_outcome(encode_error(InputError("the disk is full")))
    with pytest.raises(StopRequested):
        decode_outcome(encode_error(StopRequested()))


def test_gradients_are_summed_in_buckets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("regard.training.distributed.group.BUCKET_BYTES", 40)
    tensors = [torch.zeros(n) for n in (4, 6, 1, 20)] + [torch.zeros(1, dtype=torch.float64)]
    assert [[t.numel() for t in bucket] for bucket in buckets(tensors)] == [[4, 6], [1], [20], [1]]


def test_random_numbers_depend_on_step_and_rank_alone():
    def draw(rank: int, step: int) -> float:
        WorkerGroup(rank, 2, seed=3).seed_step(step)
        return torch.rand(()).item()

    with torch.random.fork_rng():
        values = [draw(rank, step) for rank in (0, 1) for step in (0, 1)]
        assert len(set(values)) == 4
        assert draw(1, 0) == values[2]
