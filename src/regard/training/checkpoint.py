"""Checkpoints that are complete or absent: safetensors and JSON, with checksums.

    checkpoints/step-00000200/weights.safetensors  …  facts.json  manifest.json

All files are written to a folder with a temporary name and flushed; the manifest with the checksums
comes last. Then the folder is renamed. So a folder with the name of a checkpoint is complete, even
if the process is killed. Checksums find files that were damaged later.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import safetensors
from torch import Tensor

from regard.errors import InputError
from regard.files import (
    JsonObject,
    digest_file,
    draft_path,
    remove_drafts,
    sync_folder,
    write_synced,
)
from regard.manifest import (
    MANIFEST_FILE,
    DamagedFileError,
    Manifest,
    read_json_object,
    verify_files,
)
from regard.tasks.tensor_file import write_tensors

METADATA_FILE = "facts.json"
WEIGHTS_GROUP = "weights"
FOLDER_PATTERN = re.compile(r"step-(\d{8,})")


class Checkpoint(NamedTuple):
    """The state of a training after a step: groups of tensors (one file each) and metadata."""

    step: int
    tensors: dict[str, dict[str, Tensor]]
    metadata: JsonObject


TensorFilter = Callable[[str, str, Tensor], Tensor]
"""Takes the group, the name and a tensor of a checkpoint; returns the part to keep in memory."""


def keep_whole(group: str, name: str, tensor: Tensor) -> Tensor:
    """Return a tensor as it is in the file."""
    del group, name
    return tensor


def keep_nothing(group: str, name: str, tensor: Tensor) -> Tensor:
    del group, name
    return tensor.new_empty(0)


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into `folder`, completely or not at all; keep an intact, equal one."""
    final = folder / folder_name(checkpoint.step)
    if has_checkpoint(folder, checkpoint):
        return final
    folder.mkdir(parents=True, exist_ok=True)
    draft = draft_path(final)
    try:
        draft.mkdir()
        for group, tensors in checkpoint.tensors.items():
            write_tensors(draft / f"{group}.safetensors", tensors)
        write_synced(draft / METADATA_FILE, to_json_bytes(checkpoint.metadata))
        digests = {path.name: digest_file(path) for path in sorted(draft.iterdir())}
        manifest = Manifest(digests, {"step": checkpoint.step})
        write_synced(draft / MANIFEST_FILE, manifest.to_bytes())
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


def load_checkpoint(path: Path, keep: TensorFilter = keep_whole) -> Checkpoint:
    """Read a checkpoint, and check the checksums of all files; `keep` is called for each tensor."""
    manifest = verify_files(path)
    step = manifest.facts.get("step")
    if not isinstance(step, int) or folder_name(step) != path.name:
        raise DamagedFileError(f"{path / MANIFEST_FILE}: is not the manifest of this checkpoint")
    tensors: dict[str, dict[str, Tensor]] = {}
    for name in manifest.files:
        file = path / name
        if file.suffix == ".safetensors":
            try:
                with safetensors.safe_open(file, framework="pt") as stored:
                    tensors[file.stem] = {
                        key: keep(file.stem, key, stored.get_tensor(key))
                        for key in stored.offset_keys()
                    }
            except safetensors.SafetensorError as error:
                raise DamagedFileError(f"{file}: {error}") from error
    return Checkpoint(step, tensors, read_json_object(path / METADATA_FILE))


class CheckpointWeights(Mapping[str, Tensor]):
    """The weights of an intact checkpoint; each is read when it is asked for."""

    def __init__(self, path: Path):
        verify_files(path)
        self.file = path / f"{WEIGHTS_GROUP}.safetensors"
        with safetensors.safe_open(self.file, framework="pt") as stored:
            self.names = list(stored.offset_keys())

    def __getitem__(self, name: str) -> Tensor:
        with safetensors.safe_open(self.file, framework="pt") as stored:
            return stored.get_tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def folder_name(step: int) -> str:
    return f"step-{step:08}"


def checkpoint_step(path: Path) -> int:
    return int(path.name.split("-")[1])


def checkpoint_folders(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, newest first."""
    if not folder.is_dir():
        return []
    folders = [path for path in folder.iterdir() if FOLDER_PATTERN.fullmatch(path.name)]
    return sorted(folders, key=checkpoint_step, reverse=True)


def load_newest_checkpoint(
    folder: Path, keep: TensorFilter = keep_whole
) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest intact checkpoint, and a message for each that was skipped."""
    skipped: list[str] = []
    for path in checkpoint_folders(folder):
        try:
            return load_checkpoint(path, keep), skipped
        except DamagedFileError as error:
            skipped.append(f"{error}; skipped, an earlier checkpoint is used")
    return None, skipped


def prune_checkpoints(folder: Path, keep: int, save_every: int = 1) -> None:
    """Remove all checkpoints except the newest `keep`, and the drafts of killed processes.

    Of checkpoints at other steps than the multiples of `save_every`, which an interruption has
    left, only the newest checkpoint of all stays. So the result does not depend on interruptions.
    """
    if keep < 1:
        raise InputError(f"keep must be at least 1, not {keep}")
    older = checkpoint_folders(folder)[1:]
    scheduled = [path for path in older if checkpoint_step(path) % save_every == 0]
    for path in older:
        if path not in scheduled[: keep - 1]:
            remove_checkpoint(path)
    remove_drafts(folder)


def remove_checkpoint(path: Path) -> None:
    """Rename the folder, then remove it, so that no checkpoint is ever incomplete."""
    if path.exists():
        trash = draft_path(path)
        path.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)


def has_checkpoint(folder: Path, checkpoint: Checkpoint) -> bool:
    """Return whether `folder` has an intact checkpoint of this step with the same metadata."""
    path = folder / folder_name(checkpoint.step)
    try:
        verify_files(path)
        return (path / METADATA_FILE).read_bytes() == to_json_bytes(checkpoint.metadata)
    except DamagedFileError:
        return False


def to_json_bytes(values: JsonObject) -> bytes:
    return (json.dumps(values, indent=1, allow_nan=False) + "\n").encode()
