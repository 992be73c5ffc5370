"""Checkpoints that are complete or absent: safetensors and JSON, with checksums.

    checkpoints/step-00000200/weights.safetensors  …  facts.json  manifest.json

All files are written to a folder with a temporary name and flushed; the manifest with the checksums
comes last. Then the folder is renamed. So a folder with the name of a checkpoint is complete, even
if the process is killed. Checksums find files that were damaged later.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import safetensors
import safetensors.torch
from torch import Tensor

from regard.errors import InputError
from regard.files import JsonObject, is_stale_draft

MANIFEST_FILE, METADATA_FILE = "manifest.json", "facts.json"
FOLDER_PATTERN = re.compile(r"step-(\d{8,})")


class Checkpoint(NamedTuple):
    """The state of a training after a step: groups of tensors (one file each) and metadata."""

    step: int
    tensors: dict[str, dict[str, Tensor]]
    metadata: JsonObject


class DamagedCheckpointError(InputError):
    """A file of a checkpoint is missing, or differs from what was written."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into `folder`, completely or not at all; keep an intact one."""
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
    """Read a checkpoint, and check the checksums of all files."""
    metadata: JsonObject = {}
    tensors: dict[str, dict[str, Tensor]] = {}
    manifest = read_json(path / MANIFEST_FILE)
    checksums = manifest.get("sha256")
    if not isinstance(checksums, dict) or folder_name(manifest.get("step")) != path.name:
        raise DamagedCheckpointError(
            f"{path / MANIFEST_FILE}: is not the manifest of this checkpoint"
        )
    for name, expected in checksums.items():
        file = path / Path(name).name
        if not file.is_file():
            raise DamagedCheckpointError(f"{file}: is missing")
        if checksum(file) != expected:
            raise DamagedCheckpointError(f"{file}: was changed (its checksum is wrong)")
        if file.suffix == ".safetensors":
            try:
                tensors[file.stem] = safetensors.torch.load_file(file)
            except safetensors.SafetensorError as error:
                raise DamagedCheckpointError(f"{file}: {error}") from error
        elif file.name == METADATA_FILE:
            metadata = read_json(file)
    return Checkpoint(manifest["step"], tensors, metadata)


def folder_name(step: object) -> str:
    return f"step-{step:08}" if isinstance(step, int) else ""


def checkpoint_folders(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, newest first."""
    if not folder.is_dir():
        return []
    folders = [path for path in folder.iterdir() if FOLDER_PATTERN.fullmatch(path.name)]
    return sorted(folders, key=lambda path: int(path.name.split("-")[1]), reverse=True)


def load_newest_checkpoint(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest intact checkpoint, and a message for each that was skipped."""
    skipped: list[str] = []
    for path in checkpoint_folders(folder):
        try:
            return load_checkpoint(path), skipped
        except DamagedCheckpointError as error:
            skipped.append(f"{error}; skipped, an earlier checkpoint is used")
    return None, skipped


def prune_checkpoints(folder: Path, keep: int, also_keep: Path | None = None) -> None:
    """Remove old checkpoints except the newest `keep` and `also_keep`, and stale drafts."""
    if keep < 1:
        raise InputError(f"keep must be at least 1, not {keep}")
    for path in checkpoint_folders(folder)[keep:]:
        if path != also_keep:
            remove_checkpoint(path)
    for path in stale_drafts(folder):
        shutil.rmtree(path, ignore_errors=True)


def remove_checkpoint(path: Path) -> None:
    """Rename the folder, then remove it, so that no checkpoint is ever incomplete."""
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
    """Flush the names of a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_json_bytes(values: JsonObject) -> bytes:
    return (json.dumps(values, indent=1, allow_nan=False) + "\n").encode()


def read_json(path: Path) -> JsonObject:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DamagedCheckpointError(f"{path}: is missing") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DamagedCheckpointError(f"{path}: is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise DamagedCheckpointError(f"{path}: is not a JSON object")
    return value
