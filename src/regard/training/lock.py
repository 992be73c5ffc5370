"""The lock of a run folder: one training at a time.

The operating system holds the lock (`flock`) and releases it when the process ends, however it
ends. The lock file says who holds it. A training that ends removes the file.
"""

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from weakref import WeakValueDictionary

from regard.errors import InputError
from regard.tasks.run_folder import LOCK_FILE

HELD_LOCKS: "WeakValueDictionary[Path, FolderLock]" = WeakValueDictionary()
HELD_LOCKS_GUARD = threading.Lock()


class FolderLock:
    """The lock of one folder; a new one in the same thread takes it over.

    So a notebook may make a second `Trainer` for a folder, whose first one can no longer train.
    """

    def __init__(self, folder: Path, user: str = "a training"):
        self.folder, self.path = folder, folder / LOCK_FILE
        self.thread, self.process = threading.get_ident(), os.getpid()
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        self.new_folders = missing
        with HELD_LOCKS_GUARD:
            holder = HELD_LOCKS.get(folder.resolve())
            if holder is not None and holder.thread == self.thread:
                holder.release()
            self.handle: int | None = open_locked(self.path, user)
            HELD_LOCKS[folder.resolve()] = self

    def check(self) -> None:
        """Raise an error if this lock was released or taken over."""
        if self.handle is None:
            raise InputError(
                f"{self.folder}: this trainer is closed, or a later one has opened the folder; "
                "make a new Trainer"
            )

    def release(self) -> None:
        """Release the lock, and remove its file."""
        if self.handle is not None:
            if os.getpid() == self.process:  # a forked process shares the lock of its parent
                self.path.unlink(missing_ok=True)
            os.close(self.handle)
            self.handle = None

    def abandon(self) -> None:
        """Release the lock, and remove the folders that were made for it, if they are empty."""
        self.release()
        for folder in self.new_folders:
            try:
                folder.rmdir()
            except OSError:
                return

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            self.release()


class FollowerLock:
    """The lock of a process that writes no files, because another of its group does."""

    def __init__(self) -> None:
        self.handle: int | None = -1

    def check(self) -> None:
        """Do nothing: the process that holds the lock checks it."""

    def release(self) -> None:
        self.handle = None

    abandon = release


def open_locked(path: Path, user: str) -> int:
    """Open and lock a file; raise InputError with its holder if another `user` has locked it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            lock_handle(handle, path, user)
            is_current = path.exists() and os.path.samestat(os.fstat(handle), path.stat())
        except BaseException:
            os.close(handle)
            raise
        if is_current:  # else its holder has just removed it
            break
        os.close(handle)
    holder = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "start": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    os.ftruncate(handle, 0)
    os.write(handle, json.dumps(holder).encode())
    return handle


def lock_handle(handle: int, path: Path, user: str) -> None:
    """Lock an open file; file systems without locks, and Windows, are left without one."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{path.parent}: is in use by {user} ({describe_holder(path)}); "
            "wait for its end, or use another folder"
        ) from None
    except OSError:
        return


def describe_holder(path: Path) -> str:
    """Return who holds a lock, from the text in its file."""
    try:
        match json.loads(path.read_bytes()):
            case {"process": int() as process, "host": str() as host, "start": str() as start}:
                return f"process {process} on {host}, since {start}"
            case _:
                return "of another process"
    except (OSError, ValueError):
        return "of another process"
