"""Files that are complete or absent, and the type of what JSON and TOML files hold."""

import os
import secrets
import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

JsonObject = dict[str, Any]
"""A JSON object or a TOML table."""

DRAFT_SUFFIX = ".draft"
SETTLED_NANOSECONDS = 2_000_000_000  # an older file cannot change without a new time stamp


class FileDigest(NamedTuple):
    """The size and the SHA-256 of a file."""

    size: int
    sha256: str


def draft_path(path: Path) -> Path:
    """Return a new hidden name beside `path`, to write to before the file is renamed."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{DRAFT_SUFFIX}")


def write_atomic(path: Path, data: bytes) -> None:
    """Write to a draft, flush to the disk, rename; a failure leaves what was there."""
    draft = draft_path(path)
    try:
        with explain_write_errors(path):
            write_synced(draft, data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, and flush it to the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names of a folder to the disk, where the system can."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def explain_write_errors(path: Path) -> Generator[None]:
    """Errors of writing, as of a full disk, name this file and say what to do."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "what was there before is intact; make room, and give the same command again"
        raise OSError(error.errno, f"{reason}; {hint}", str(path)) from error


def remove_drafts(folder: Path) -> None:
    """Remove the drafts that killed processes have left in a folder.

    The caller holds the lock of the folder, so no other process writes there.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name.startswith(".") and path.name.endswith(DRAFT_SUFFIX):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def digest_file(path: Path) -> FileDigest:
    """Return the digest of a file; it is computed once for each version of the file."""
    status = path.stat()
    if time.time_ns() - status.st_mtime_ns < SETTLED_NANOSECONDS:
        return FileDigest(status.st_size, _read_sha256(path))
    version = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return FileDigest(status.st_size, _cached_sha256(path.resolve(), version))


@lru_cache(maxsize=4096)
def _cached_sha256(path: Path, version: tuple[int, ...]) -> str:
    del version  # a part of the key only
    return _read_sha256(path)


def _read_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
