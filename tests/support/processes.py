"""Processes of a group, forked from the test: they start in milliseconds."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Timer

from regard.training.distributed.group import WorkerGroup, join_group

SECONDS_OF_A_HANG = 240  # a group needs ten


def start(run: Callable[[], int], output: Path) -> int:
    """Run a function in a forked process with the signals of a new program; return its number."""
    process = os.fork()
    if process:
        return process
    code = 99
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", 1, closefd=False) for n in (1, 2))
        code = run()
    finally:
        os._exit(code)


def exit_code(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def set_rank(rank: int, size: int, port: int) -> None:
    """Set the variables that torchrun gives to a process."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def run_in_group(function: Callable[[WorkerGroup], None], output: Path, size: int = 2) -> None:
    """Call a function in each process of a group; fail with their output if one of them fails.

    A group that hangs is started once more: rarely, a process waits forever in gloo, in the
    destructor of a buffer (UnboundBuffer) that its other thread has not released. In a training,
    the time limit of its group ends that, and all processes start again.
    """
    for _ in range(2):
        port = free_port()
        ranks = [start(partial(run_as_rank, function, n, size, port), output) for n in range(size)]
        timer = Timer(SECONDS_OF_A_HANG, end_processes, [ranks])
        timer.start()
        codes = [exit_code(rank) for rank in ranks]
        timer.cancel()
        if -signal.SIGKILL not in codes:
            break
    assert codes == [0] * size, output.read_text()


def end_processes(processes: Sequence[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def run_as_rank(function: Callable[[WorkerGroup], None], rank: int, size: int, port: int) -> int:
    set_rank(rank, size, port)
    try:
        with join_group(seed=0) as group:
            function(group)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0
