"""Several processes that share one socket: dead ones are replaced, their metrics are added up."""

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from socket import socket
from tempfile import TemporaryDirectory

from prometheus_client.multiprocess import mark_process_dead
from uvicorn import Config
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from regard.errors import InputError
from regard.serve.metrics import SHARED_METRICS_VARIABLE

MAX_FAILED_STARTS = 3  # in succession, before the server gives up
PARENT_CHECK_SECONDS = 1.0
log = logging.getLogger("regard.serve")


class WorkerSupervisor(Multiprocess):
    """Starts and watches worker processes; it ends when workers only die at their start."""

    def __init__(self, config: Config, sockets: list[socket], metrics_folder: str):
        super().__init__(config, sockets)
        self.metrics_folder = metrics_folder
        self.ready_workers, self.failed_starts = set[int | None](), 0

    @property
    def has_given_up(self) -> bool:
        return self.failed_starts >= MAX_FAILED_STARTS

    def keep_subprocess_alive(self) -> None:
        """Replace dead workers, and those that do not answer."""
        for index, worker in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            worker.child_conn.close()  # the end of this process: the pipe ends with the worker
            if worker.is_alive(timeout=self.config.timeout_worker_healthcheck):
                if worker.pid not in self.ready_workers and worker.is_ready(timeout=1):
                    self.ready_workers.add(worker.pid)
                    self.failed_starts = 0
                continue
            worker.kill()
            worker.join()
            self.record_death(worker)
            if self.has_given_up:
                self.should_exit.set()
                return
            self.processes[index] = Process(self.config, self.sockets)
            self.processes[index].start()

    def record_death(self, worker: Process) -> None:
        """Log the end of a worker, and count it if it was never ready."""
        was_ready = worker.pid in self.ready_workers
        self.ready_workers.discard(worker.pid)
        if not was_ready:
            self.failed_starts += 1
        mark_process_dead(worker.pid, self.metrics_folder)
        line = {"event": "worker died", "exit": worker.exitcode, "was_ready": was_ready}
        log.error(json.dumps(line))


def run_workers(config: Config, sockets: Sequence[socket]) -> None:
    """Run worker processes until a signal; they finish the requests that are under way."""
    with TemporaryDirectory(prefix="regard-metrics-") as folder:
        os.environ[SHARED_METRICS_VARIABLE] = folder
        supervisor = WorkerSupervisor(config, list(sockets), folder)
        supervisor.run()
    if supervisor.has_given_up:
        raise InputError(
            f"--workers: {MAX_FAILED_STARTS} processes died before they were ready; "
            "the lines above may say why; is there memory for all of them?"
        )


def end_with_parent() -> None:
    """Stop this worker when its parent process is gone, so that none keeps the port."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watcher", daemon=True).start()
