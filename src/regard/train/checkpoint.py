"""Checkpoints that are whole or not there: safetensors and JSON, with checksums.

    checkpoints/step-00000200/weights.safetensors  …  facts.json  manifest.json

Everything is written under a temporary name and flushed, the manifest with the checksums last; then
one rename makes it a checkpoint. Whenever a process is killed, each folder of that name is
complete; a file that was damaged later is found by its checksum.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
from torch import Tensor

from regard.config.whole import is_abandoned

MANIFEST, FACTS = "manifest.json", "facts.json"
NAME = re.compile(r"step-(\d{8,})")


class Checkpoint(NamedTuple):
    """Named groups of tensors (one file each) and plain facts, as they were at a step."""

    step: int
    tensors: dict[str, dict[str, Tensor]]
    facts: dict[str, Any]


class DamagedError(ValueError):
    """A checkpoint that is not what was written."""


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into `folder`, whole or not at all; one that is there intact stays."""
    final = folder / folder_name(checkpoint.step)
    if is_intact(final):
        return final
    folder.mkdir(parents=True, exist_ok=True)
    draft = draft_of(final)
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir()
        for group, tensors in checkpoint.tensors.items():
            plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
            write(draft / f"{group}.safetensors", safetensors.torch.save(plain))
        write(draft / FACTS, encoded(checkpoint.facts))
        sums = {path.name: checksum(path) for path in sorted(draft.iterdir())}
        write(draft / MANIFEST, encoded({"step": checkpoint.step, "sha256": sums}))
        flush(draft)
        remove(final)
        draft.rename(final)
        flush(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        where, what = error.filename or draft, (error.strerror or str(error)).lower()
        intact = "the checkpoint was not written, earlier ones are intact"
        again = "make room, and give the same command again"
        raise OSError(error.errno, f"{what}; {intact}; {again}", str(where)) from error
    return final


def load(path: Path) -> Checkpoint:
    """Read a checkpoint, after checking that every file is what was written."""
    facts: dict[str, Any] = {}
    tensors: dict[str, dict[str, Tensor]] = {}
    manifest = read_json(path / MANIFEST)
    sums = manifest.get("sha256") if isinstance(manifest, dict) else None
    if not isinstance(sums, dict) or folder_name(manifest.get("step")) != path.name:
        raise DamagedError(f"{path / MANIFEST}: is not the manifest of this checkpoint")
    for name, want in sums.items():
        file = path / Path(name).name
        if not file.is_file():
            raise DamagedError(f"{file}: is missing")
        if checksum(file) != want:
            raise DamagedError(f"{file}: does not have the checksum it was written with")
        if file.suffix == ".safetensors":
            try:
                tensors[file.stem] = safetensors.torch.load_file(file)
            except safetensors.SafetensorError as error:
                raise DamagedError(f"{file}: {error}") from error
        elif file.name == FACTS:
            facts = read_json(file)
    return Checkpoint(manifest["step"], tensors, facts)


def folder_name(step: Any) -> str:
    return f"step-{step:08}" if isinstance(step, int) else ""


def checkpoints(folder: Path) -> list[Path]:
    """Those in a folder, newest first."""
    if not folder.is_dir():
        return []
    named = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    return sorted(named, key=lambda path: int(path.name.split("-")[1]), reverse=True)


def newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is intact, and one line for each that had to be passed over."""
    skipped: list[str] = []
    for path in checkpoints(folder):
        try:
            return load(path), skipped
        except DamagedError as error:
            skipped.append(f"{error}; passed over, an earlier checkpoint is used")
    return None, skipped


def prune(folder: Path, keep: int, also: Path | None = None) -> None:
    """Keep the newest `keep` (and one more that is named); clear away drafts of dead processes."""
    if keep < 1:
        raise ValueError(f"keep must be at least 1, not {keep}")
    for path in checkpoints(folder)[keep:]:
        if path != also:
            remove(path)
    for path in drafts(folder):
        shutil.rmtree(path, ignore_errors=True)


def remove(path: Path) -> None:
    """First the name goes: no checkpoint is ever half there."""
    if path.exists():
        gone = path.with_name(f".{path.name}.gone.{os.getpid()}")
        shutil.rmtree(gone, ignore_errors=True)
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def is_intact(path: Path) -> bool:
    try:
        load(path)
    except DamagedError:
        return False
    return True


def draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def drafts(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob(".step-*.*") if is_abandoned(path))


def write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def flush(folder: Path) -> None:
    """Make the names in a folder as durable as the files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def encoded(facts: Mapping[str, Any]) -> bytes:
    return (json.dumps(facts, indent=1, allow_nan=False) + "\n").encode()


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DamagedError(f"{path}: is missing") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DamagedError(f"{path}: is not JSON ({error})") from error
