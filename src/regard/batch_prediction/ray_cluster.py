"""Parts that a Ray cluster answers: Ray Data reads them, and actors with a loaded run answer them.

The cluster is that of RAY_ADDRESS, or one of this machine that ends with the work. Every host must
see the folders of run, inputs and output under the same paths.
"""

import json
import logging
import os
import socket
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import ray
import ray.data
import torch
from ray.exceptions import RayError, RayTaskError

from regard.batch_prediction.input_parts import PART_BYTES, InputFile, InputPart
from regard.batch_prediction.part_worker import PartResult, PartWorker, WorkerSetup
from regard.batch_prediction.worker_pool import MAX_ATTEMPTS, LogCallback, core_count
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import one_line

MAX_READERS = 4  # files that are read at a time
PARTS_PER_WORKER = 2  # one that is answered, and one that waits
STORE_BYTES_PER_WORKER = 16 * PART_BYTES
ATTEMPTS_SUFFIX = ".attempts"
CONNECT_SECONDS = 10.0
ADDRESS_VARIABLE = "RAY_ADDRESS"


class SharedFolders(NamedTuple):
    """The current folder and the lock of the output with its text, which every host must see."""

    host: str
    current: str
    lock: str
    lock_text: str

    @classmethod
    def of_command(cls, lock: Path) -> "SharedFolders":
        return cls(socket.gethostname(), str(Path.cwd()), str(lock), lock.read_text())

    def enter(self) -> None:
        """Go to the current folder of the command, for its relative paths."""
        try:
            os.chdir(self.current)
        except OSError:
            raise self.error(Path(self.current)) from None
        try:
            is_shared = Path(self.lock).read_text() == self.lock_text
        except OSError:
            is_shared = False
        if not is_shared:
            raise self.error(Path(self.lock).parent)

    def error(self, folder: Path) -> InputError:
        return InputError(
            f"{folder}: is not shared with host {socket.gethostname()} of the Ray cluster; "
            "give folders that all of its hosts see under the same path"
        )

    def describe(self, error: Exception) -> str:
        """Return an error, with its host if that is another one."""
        host = socket.gethostname()
        return str(error) if host == self.host else f"{error} (on host {host})"


def read_file_parts(row: dict[str, str], *, folders: SharedFolders) -> Iterator[dict[str, bytes]]:
    """Yield the parts of a file that are not finished, in a task of the cluster."""
    try:
        folders.enter()
        file, finished_rows = InputFile(*json.loads(row["file"])), json.loads(row["finished_rows"])
        for part in file.read_parts():
            if finished_rows.get(str(part.start)) != part.rows:
                yield {"part": part.to_bytes(), "error": b""}
    except (InputError, OSError) as error:
        yield {"part": b"", "error": folders.describe(error).encode()}


class RayWorker:
    """An actor: it loads a run with its first part, and answers one part at a time."""

    def __init__(self, setup: WorkerSetup, folders: SharedFolders):
        self.setup, self.folders = setup, folders
        self.worker: PartWorker | None = None

    def __call__(self, row: dict[str, bytes]) -> dict[str, str]:
        """Return the result of a part, or the error that ends the work, as JSON."""
        if row["error"]:
            return {"reply": json.dumps({"error": row["error"].decode()})}
        try:
            self.worker = self.worker or self.build_worker()
            part = InputPart.from_bytes(row["part"])
            file = attempts_file(self.setup, part)
            attempts = count_attempt(file, part)
            result = self.worker.finish(part)
            file.unlink(missing_ok=True)
            reply: JsonObject = {"result": result, "attempts": attempts}
        except (InputError, OSError) as error:
            reply = {"error": self.folders.describe(error)}
        return {"reply": json.dumps(reply)}

    def build_worker(self) -> PartWorker:
        torch.set_num_threads(1)
        self.folders.enter()
        return PartWorker(self.setup)


def attempts_file(setup: WorkerSetup, part: InputPart) -> Path:
    """Return the file that has a byte for each attempt at a part."""
    return Path(setup.parts_folder, part.file.name, f"{part.start:012}{ATTEMPTS_SUFFIX}")


def count_attempt(file: Path, part: InputPart) -> int:
    """Note that a part is begun, and return how often; raise an error if that is too often.

    Ray does the parts of a dead actor again without end.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as attempts:
        attempts.write(b".")
    count = file.stat().st_size
    if count > MAX_ATTEMPTS:
        raise InputError(
            f"{part.rows_location}: {MAX_ATTEMPTS} worker processes died; "
            "is there enough memory? give fewer --workers"
        )
    return count


def forget_attempts(setup: WorkerSetup) -> None:
    """Remove the attempts of earlier calls."""
    for file in Path(setup.parts_folder).rglob(f"*{ATTEMPTS_SUFFIX}"):
        file.unlink(missing_ok=True)


def ray_results(
    setup: WorkerSetup,
    files: Sequence[tuple[InputFile, Mapping[int, int]]],
    workers: int | None,
    lock: Path,
    on_log: LogCallback,
) -> Iterator[PartResult]:
    """Yield the results of the parts of files, in the order in which they are finished.

    Each file comes with the rows of its finished parts, which are not answered again. An actor that
    dies is replaced, and its part answered again, up to MAX_ATTEMPTS times. A part may have two
    results.
    """
    if not files:
        return
    forget_attempts(setup)
    with open_cluster(workers) as cpus:
        replies = part_replies(setup, files, workers or cpus, SharedFolders.of_command(lock))
        try:
            for reply in replies:
                if "error" in reply:
                    raise InputError(reply["error"])
                result = PartResult(*reply["result"])
                if reply["attempts"] > 1:
                    last = result.start + result.rows
                    on_log(
                        f"{result.name}: rows {result.start + 1} to {last}: a worker process died; "
                        "another one did them again"
                    )
                yield result
        except RayTaskError:
            raise  # a bug, whose traceback this error has
        except RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise InputError(
                f"the Ray cluster failed ({reason}); the same command does the parts that are left"
            ) from None


def part_replies(
    setup: WorkerSetup,
    files: Sequence[tuple[InputFile, Mapping[int, int]]],
    workers: int,
    folders: SharedFolders,
) -> Iterator[JsonObject]:
    """Yield what the actors reply to the parts of files."""
    rows = [{"file": json.dumps(file), "finished_rows": json.dumps(n)} for file, n in files]
    with ray.data.DataContext.current(data_context(workers)):
        data = ray.data.from_items(rows, override_num_blocks=min(len(rows), MAX_READERS))
    data = data.flat_map(partial(read_file_parts, folders=folders), num_cpus=0)
    data = data.map(
        cast("Callable[[dict[str, bytes]], dict[str, str]]", RayWorker),
        fn_constructor_args=(setup, folders),
        compute=ray.data.ActorPoolStrategy(
            size=workers, max_tasks_in_flight_per_actor=PARTS_PER_WORKER
        ),
        num_cpus=1,
    )
    for batch in data.iter_batches(batch_size=None, prefetch_batches=0):
        yield from map(json.loads, batch["reply"])


def data_context(workers: int) -> ray.data.DataContext:
    """Return settings of Ray Data: a block for each part, a few parts, and no output of its own."""
    context = ray.data.DataContext.get_current().copy()
    context.target_max_block_size = 1
    context.execution_options.resource_limits = ray.data.ExecutionResources.for_limits(
        object_store_memory=workers * STORE_BYTES_PER_WORKER
    )
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = -1
    return context


@contextmanager
def open_cluster(workers: int | None) -> Generator[int]:
    """Connect to a cluster, or start one on this machine; give the number of its CPUs."""
    is_open = ray.is_initialized()  # by the program that calls
    if not is_open:
        start_ray(os.environ.get(ADDRESS_VARIABLE), workers)
    try:
        yield int(ray.cluster_resources().get("CPU", 1))
    finally:
        if not is_open:
            ray.shutdown()


def start_ray(address: str | None, workers: int | None) -> None:
    """Connect to the cluster at an address, or start one with a CPU for each worker."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # sends nothing
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors are exceptions, too
    try:
        if address:
            check_address(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        else:
            ray.init(
                address="local",
                num_cpus=workers or core_count(),
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except Exception as error:  # Ray raises nothing more precise
        ray.shutdown()
        reason = one_line(error)
        raise InputError(
            f"{ADDRESS_VARIABLE}: no Ray cluster at {address} ({reason}); start one with "
            "`ray start --head`, or unset the variable for one of this machine"
            if address
            else f"--ray: Ray does not start on this machine ({reason}); leave it out, or try again"
        ) from None


def check_address(address: str) -> None:
    """Raise an error if nothing listens at HOST:PORT, for which Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "://" not in host:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
