"""Files that are complete or absent, and the type of what JSON and TOML files hold."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]
"""A JSON object or a TOML table."""


def write_atomic(path: Path, data: bytes) -> None:
    """Write to a name of our own, flush to the disk, rename; a failure leaves what was there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with explain_write_errors(path), draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def explain_write_errors(path: Path) -> Generator[None]:
    """Errors of writing, as of a full disk, name this file and say what to do."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "what was there before is intact; make room, and give the same command again"
        raise OSError(error.errno, f"{reason}; {hint}", str(path)) from error


def is_stale_draft(draft: Path) -> bool:
    """The draft of a process that is no more: it was killed while it wrote."""
    process_id = draft.name.rpartition(".")[2]
    is_process_gone = process_id.isdigit() and not Path("/proc", process_id).exists()
    return draft.name.startswith(".") and is_process_gone


def remove_stale_drafts(folder: Path) -> None:
    """Remove the drafts that killed processes have left of single files."""
    for path in folder.iterdir():
        if path.is_file() and is_stale_draft(path):
            path.unlink(missing_ok=True)
