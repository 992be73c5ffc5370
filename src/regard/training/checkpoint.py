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

from regard.files import is_stale_draft

MANIFEST_FILE, METADATA_FILE = "manifest.json", "facts.json"
FOLDER_PATTERN = re.compile(r"step-(\d{8,})")


class Checkpoint(NamedTuple):
    """Named groups of tensors (one file each) and plain facts, as they were at a step."""

    step: int
    tensors: dict[str, dict[str, Tensor]]
    metadata: dict[str, Any]


class DamagedCheckpointError(ValueError):
    """A checkpoint that is not what was written."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into `folder`, whole or not at all; one that is there intact stays."""
    final = folder / folder_name(checkpoint.step)
    if is_intact(final):
        return final
    folder.mkdir(parents=True, exist_ok=True)
    draft = draft_path(final)
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir()
        for group, tensors in checkpoint.tensors.items():
            contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
            write_synced(draft / f"{group}.safetensors", safetensors.torch.save(contiguous))
        write_synced(draft / METADATA_FILE, to_json_bytes(checkpoint.metadata))
        checksums = {path.name: checksum(path) for path in sorted(draft.iterdir())}
        write_synced(
            draft / MANIFEST_FILE, to_json_bytes({"step": checkpoint.step, "sha256": checksums})
        )
        sync_folder(draft)
        remove_checkpoint(final)
        draft.rename(final)
        sync_folder(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        failed_path, reason = error.filename or draft, (error.strerror or str(error)).lower()
        intact = "the checkpoint was not written, earlier ones are intact"
        remedy = "make room, and give the same command again"
        raise OSError(error.errno, f"{reason}; {intact}; {remedy}", str(failed_path)) from error
    return final


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, after checking that every file is what was written."""
    metadata: dict[str, Any] = {}
    tensors: dict[str, dict[str, Tensor]] = {}
    manifest = read_json(path / MANIFEST_FILE)
    checksums = manifest.get("sha256") if isinstance(manifest, dict) else None
    if not isinstance(checksums, dict) or folder_name(manifest.get("step")) != path.name:
        raise DamagedCheckpointError(
            f"{path / MANIFEST_FILE}: is not the manifest of this checkpoint"
        )
    for name, expected in checksums.items():
        file = path / Path(name).name
        if not file.is_file():
            raise DamagedCheckpointError(f"{file}: is missing")
        if checksum(file) != expected:
            raise DamagedCheckpointError(f"{file}: does not have the checksum it was written with")
        if file.suffix == ".safetensors":
            try:
                tensors[file.stem] = safetensors.torch.load_file(file)
            except safetensors.SafetensorError as error:
                raise DamagedCheckpointError(f"{file}: {error}") from error
        elif file.name == METADATA_FILE:
            metadata = read_json(file)
    return Checkpoint(manifest["step"], tensors, metadata)


def folder_name(step: Any) -> str:
    return f"step-{step:08}" if isinstance(step, int) else ""


def checkpoint_folders(folder: Path) -> list[Path]:
    """Those in a folder, newest first."""
    if not folder.is_dir():
        return []
    folders = [path for path in folder.iterdir() if FOLDER_PATTERN.fullmatch(path.name)]
    return sorted(folders, key=lambda path: int(path.name.split("-")[1]), reverse=True)


def load_newest_checkpoint(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is intact, and one line for each that had to be passed over."""
    skipped: list[str] = []
    for path in checkpoint_folders(folder):
        try:
            return load_checkpoint(path), skipped
        except DamagedCheckpointError as error:
            skipped.append(f"{error}; passed over, an earlier checkpoint is used")
    return None, skipped


def prune_checkpoints(folder: Path, keep: int, also_keep: Path | None = None) -> None:
    """Keep the newest `keep` (and one more that is named); clear away drafts of dead processes."""
    if keep < 1:
        raise ValueError(f"keep must be at least 1, not {keep}")
    for path in checkpoint_folders(folder)[keep:]:
        if path != also_keep:
            remove_checkpoint(path)
    for path in stale_drafts(folder):
        shutil.rmtree(path, ignore_errors=True)


def remove_checkpoint(path: Path) -> None:
    """First the name goes: no checkpoint is ever half there."""
    if path.exists():
        trash = path.with_name(f".{path.name}.gone.{os.getpid()}")
        shutil.rmtree(trash, ignore_errors=True)
        path.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)


def is_intact(path: Path) -> bool:
    try:
        load_checkpoint(path)
    except DamagedCheckpointError:
        return False
    return True


def draft_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def stale_drafts(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob(".step-*.*") if is_stale_draft(path))


def write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as durable as the files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_json_bytes(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, indent=1, allow_nan=False) + "\n").encode()


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DamagedCheckpointError(f"{path}: is missing") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DamagedCheckpointError(f"{path}: is not JSON ({error})") from error
