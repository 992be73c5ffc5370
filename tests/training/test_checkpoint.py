"""A checkpoint is whole or not there, whatever happens while it is written."""

import errno
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

from regard.manifest import DamagedFileError
from regard.training import checkpoint
from regard.training.checkpoint import (
    Checkpoint,
    checkpoint_folders,
    load_checkpoint,
    load_newest_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)


def made(step: int) -> Checkpoint:
    weights = {"w": torch.full((50, 50), float(step)), "n": torch.tensor([step])}
    return Checkpoint(step, {"weights": weights, "optimizer": {}}, {"done": step, "text": "é"})


def same(one: Checkpoint, other: Checkpoint) -> bool:
    return (
        one.metadata == other.metadata
        and one.tensors.keys() == other.tensors.keys()
        and all(
            torch.equal(one.tensors["weights"][k], v) for k, v in other.tensors["weights"].items()
        )
    )


def test_what_is_saved_is_loaded(tmp_path: Path):
    path = save_checkpoint(tmp_path, made(7))
    assert sorted(p.name for p in path.iterdir()) == [
        "facts.json",
        "manifest.json",
        "optimizer.safetensors",
        "weights.safetensors",
    ]
    assert same(load_checkpoint(path), made(7))
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000007"]


def test_newest_first_and_pruned(tmp_path: Path):
    for step in (9, 100, 20, 3):
        save_checkpoint(tmp_path, made(step))
    assert [p.name for p in checkpoint_folders(tmp_path)] == [
        f"step-{n:08}" for n in (100, 20, 9, 3)
    ]
    prune_checkpoints(tmp_path, 2)
    assert [p.name for p in checkpoint_folders(tmp_path)] == [f"step-{n:08}" for n in (100, 20)]
    assert load_newest_checkpoint(tmp_path / "nothing") == (None, [])


def test_only_scheduled_checkpoints_and_the_newest_are_kept(tmp_path: Path):
    for step in (4, 8, 10, 12, 14):
        save_checkpoint(tmp_path, made(step))
    prune_checkpoints(tmp_path, 3, save_every=4)
    assert [p.name for p in checkpoint_folders(tmp_path)] == [f"step-{n:08}" for n in (14, 12, 8)]


def test_an_equal_checkpoint_is_kept_and_another_one_replaced(tmp_path: Path):
    path = save_checkpoint(tmp_path, made(1))
    before = path.stat().st_ino
    assert save_checkpoint(tmp_path, made(1)).stat().st_ino == before
    other = made(1)._replace(metadata={"done": 1, "needs_validation": True})
    save_checkpoint(tmp_path, other)
    assert load_checkpoint(path).metadata == other.metadata


@pytest.mark.parametrize("name", ["weights.safetensors", "facts.json", "manifest.json"])
def test_one_flipped_bit_is_found_and_the_one_before_is_used(tmp_path: Path, name: str):
    save_checkpoint(tmp_path, made(1))
    file = save_checkpoint(tmp_path, made(2)) / name
    data = bytearray(file.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    file.write_bytes(data)
    found, skipped = load_newest_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 1
    assert len(skipped) == 1
    assert "step-00000002" in skipped[0]
    assert "earlier checkpoint is used" in skipped[0]


@pytest.mark.parametrize("name", ["weights.safetensors", "facts.json", "manifest.json"])
def test_a_missing_or_cut_file_is_found(tmp_path: Path, name: str):
    for damage in (
        lambda file: file.unlink(),
        lambda file: file.write_bytes(file.read_bytes()[:-9]),
    ):
        path = save_checkpoint(tmp_path / damage.__repr__(), made(2))
        damage(path / name)
        with pytest.raises(DamagedFileError, match=name):
            load_checkpoint(path)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save_checkpoint(tmp_path, made(1))
    original, calls = checkpoint.write_synced, []

    def full(path: Path, data: bytes) -> None:
        calls.append(path)
        if len(calls) == 2:
            original(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        original(path, data)

    monkeypatch.setattr(checkpoint, "write_synced", full)
    with pytest.raises(OSError, match="no space left on device; the checkpoint was not written"):
        save_checkpoint(tmp_path, made(2))
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]
    assert same(load_checkpoint(tmp_path / "step-00000001"), made(1))


def test_killed_while_saving(tmp_path: Path):
    """A process that only saves, killed at random moments: all that is there is whole."""
    script = f"""
        import torch
        from pathlib import Path
        from regard.training.checkpoint import (
            Checkpoint, load_newest_checkpoint, prune_checkpoints, save_checkpoint
        )
        folder = Path({str(tmp_path)!r})
        last, _ = load_newest_checkpoint(folder)
        step = 0 if last is None else last.step
        print("ready", flush=True)
        while True:
            step += 1
            weights = {{"w": torch.full((400, 400), float(step))}}
            save_checkpoint(folder, Checkpoint(step, {{"weights": weights}}, {{}}))
            prune_checkpoints(folder, 3)
    """
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        before = {path.name for path in checkpoint_folders(tmp_path)}
        while (
            before == {path.name for path in checkpoint_folders(tmp_path)}
            and process.poll() is None
        ):
            time.sleep(0.01)  # until it has saved once more
        time.sleep(random.uniform(0.01, 0.4))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found, skipped = load_newest_checkpoint(tmp_path)
        assert skipped == []
        for path in checkpoint_folders(tmp_path):
            whole = load_checkpoint(path)
            assert (whole.tensors["weights"]["w"] == whole.step).all()
    assert found is not None
    prune_checkpoints(tmp_path, 1)
    assert len(list(tmp_path.iterdir())) == 1  # the drafts of dead processes are gone
