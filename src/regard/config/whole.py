"""Files that are there whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write to a name of our own, flush to the disk, rename; a failure leaves what was there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with told_of(path), draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def told_of(path: Path) -> Generator[None]:
    """Errors of writing, as of a full disk, name this file and say what to do."""
    try:
        yield
    except OSError as error:
        what = (error.strerror or str(error)).lower()
        hint = "what was there before is intact; make room, and give the same command again"
        raise OSError(error.errno, f"{what}; {hint}", str(path)) from error


def is_abandoned(draft: Path) -> bool:
    """The draft of a process that is no more: it was killed while it wrote."""
    process = draft.name.rpartition(".")[2]
    gone = process.isdigit() and not Path("/proc", process).exists()
    return draft.name.startswith(".") and gone


def clear(folder: Path) -> None:
    """Remove the drafts that killed processes have left of single files."""
    for path in folder.iterdir():
        if path.is_file() and is_abandoned(path):
            path.unlink(missing_ok=True)
