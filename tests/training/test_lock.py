"""One training at a time in a folder: the lock of another process or thread is respected."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regard.errors import InputError
from regard.training.lock import FolderLock

HOLD = """
import sys, time
from pathlib import Path
from regard.training.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_another_process_is_named_and_its_crash_releases_the_folder(tmp_path: Path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError) as error:
            FolderLock(tmp_path)
        assert f"process {holder.pid} on {socket.gethostname()}, since 20" in str(error.value)
        assert "use another folder" in str(error.value)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    assert (tmp_path / ".lock").exists()  # the file stays, the lock does not
    FolderLock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_another_thread_is_refused_and_the_same_one_takes_over(tmp_path: Path):
    lock, errors = FolderLock(tmp_path), []

    def try_to_lock() -> None:
        try:
            FolderLock(tmp_path)
        except InputError as error:
            errors.append(str(error))

    thread = threading.Thread(target=try_to_lock)
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert f"process {os.getpid()}" in errors[0]
    later = FolderLock(tmp_path)
    later.check()
    with pytest.raises(InputError, match="a later one has opened the folder"):
        lock.check()
    lock.release()
    assert json.loads((tmp_path / ".lock").read_text())["process"] == os.getpid()
    del later
    assert not (tmp_path / ".lock").exists()


def test_new_folders_are_removed_if_nothing_was_written(tmp_path: Path):
    FolderLock(tmp_path / "runs" / "a").abandon()
    assert list(tmp_path.iterdir()) == []
    lock = FolderLock(tmp_path / "runs" / "a")
    (tmp_path / "runs" / "b").mkdir()
    lock.abandon()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["b"]


def test_a_damaged_lock_file_is_no_obstacle(tmp_path: Path):
    (tmp_path / ".lock").write_bytes(b"\xff{")
    FolderLock(tmp_path).release()
