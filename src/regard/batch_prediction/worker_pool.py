"""Worker processes that answer parts; one that dies is replaced, and its part is done again."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from typing import IO, cast

from regard.batch_prediction.input_parts import InputPart
from regard.batch_prediction.part_worker import PartResult, WorkerSetup, write_message
from regard.errors import InputError

MAX_ATTEMPTS = 3  # at a part whose worker dies
WORKER_MODULE = "regard.batch_prediction.part_worker"
LogCallback = Callable[[str], None]


class WorkerProcess:
    """A process that answers one part at a time, with one thread."""

    def __init__(self, setup: bytes):
        self.part: InputPart | None = None
        self.process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", WORKER_MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C of a terminal is for the parent, which ends it
        )
        self.input = cast("IO[bytes]", self.process.stdin)
        self.output = cast("IO[bytes]", self.process.stdout)
        self.write(setup)

    def write(self, message: bytes) -> None:
        """Write a message; if the process is dead, its next result is None."""
        with suppress(BrokenPipeError):
            write_message(self.input, message)

    def start(self, part: InputPart) -> None:
        self.part = part
        self.write(part.to_bytes())

    def result(self) -> PartResult | None:
        """Wait for the result of the part, or None if the process has died."""
        line = self.output.readline()
        if not line.endswith(b"\n"):
            return None
        values = json.loads(line)
        if "error" in values:
            raise InputError(values["error"])
        self.part = None
        return PartResult(**values)

    def kill(self) -> str:
        """End the process at once, and return how it has ended."""
        self.process.kill()
        code = self.process.wait()
        self.output.close()
        with suppress(BrokenPipeError):  # what it has not read is lost
            self.input.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class WorkerPool:
    """Up to `count` processes, which are started when there is a part for them."""

    def __init__(self, count: int, setup: WorkerSetup, on_log: LogCallback):
        self.count, self.setup, self.on_log = count, setup.to_bytes(), on_log
        self.workers = list[WorkerProcess]()
        self.attempts = Counter[tuple[str, int]]()

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.kill()

    def results(self, parts: Iterator[InputPart]) -> Iterator[PartResult]:
        """Yield the result of each part, in the order in which they are finished."""
        retries = deque[InputPart]()
        while True:
            while self.has_room():
                part = retries.popleft() if retries else next(parts, None)
                if part is None:
                    break
                self.idle_worker().start(part)
            busy = {w.output.fileno(): w for w in self.workers if w.part is not None}
            if not busy:
                return
            for output in wait(busy):
                worker = busy[cast("int", output)]
                result = worker.result()
                if result is None:
                    retries.append(self.remove_dead(worker))
                else:
                    yield result

    def has_room(self) -> bool:
        """Return whether a worker has no part, or another one may be started."""
        return sum(worker.part is not None for worker in self.workers) < self.count

    def idle_worker(self) -> WorkerProcess:
        """Return a worker without a part, perhaps a new one."""
        for worker in self.workers:
            if worker.part is None:
                return worker
        self.workers.append(WorkerProcess(self.setup))
        return self.workers[-1]

    def remove_dead(self, worker: WorkerProcess) -> InputPart:
        """Remove a dead worker, and return its part; raise an error if it was the last attempt."""
        part = cast("InputPart", worker.part)
        self.workers.remove(worker)
        reason = worker.kill()
        self.attempts[part.file.name, part.start] += 1
        if self.attempts[part.file.name, part.start] == MAX_ATTEMPTS:
            raise InputError(
                f"{part.rows_location}: {MAX_ATTEMPTS} worker processes died ({reason}); "
                "is there enough memory? give fewer --workers"
            )
        self.on_log(
            f"{part.rows_location}: a worker process died ({reason}); another one does them again"
        )
        return part


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
