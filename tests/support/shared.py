"""Folders that all workers of a session share, so that each is built once and not once a worker."""

import fcntl
from collections.abc import Callable
from pathlib import Path


class SharedFolders:
    """Build folders below `root`; the first caller builds, later callers of any process wait.

    Tests only read these folders: whoever changes one works on a copy.
    """

    def __init__(self, root: Path):
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, build: Callable[[Path], object]) -> Path:
        """Return the folder `name`, which `build` has filled once in this session."""
        folder, finished = self.root / name, self.root / f"{name}.finished"
        with (self.root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not finished.exists():
                folder.mkdir()  # a second attempt fails: the first has failed, and said why
                build(folder)
                finished.touch()
        return folder
