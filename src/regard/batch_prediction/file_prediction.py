"""Predictions for all rows of files, in parts; a call that was interrupted is continued."""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch

from regard.batch_prediction.input_parts import (
    PART_BYTES,
    PART_ROWS,
    InputFile,
    InputPart,
    find_files,
)
from regard.batch_prediction.output_folder import OutputFolder, check_apart, check_names
from regard.batch_prediction.part_answers import AnswerOptions
from regard.batch_prediction.part_worker import PartResult, PartWorker, WorkerSetup
from regard.batch_prediction.worker_pool import WorkerPool, core_count
from regard.errors import InputError
from regard.files import JsonObject, digest_file
from regard.kernels.int8 import uses_int8
from regard.manifest import checksum, digests_to_json, read_manifest
from regard.run import Run
from regard.tasks.run_folder import CHECKPOINTS_FOLDER
from regard.view.progress import ProgressBar, progress_bar

MAX_MESSAGES = 20  # of faults, in words
DEFAULT_OPTIONS = AnswerOptions()


class FileSummary(NamedTuple):
    """The rows of all files, and those among them that have no prediction."""

    rows: int
    faults: int


class RunSource(NamedTuple):
    """A run, the folder that it was loaded from, and what was changed after that."""

    run: Run
    folder: Path
    overrides: tuple[str, ...] = ()
    int8: bool = False


def predict_files(
    source: RunSource,
    inputs: Path,
    output: Path,
    *,
    workers: int | None = None,
    ray: bool = False,
    options: AnswerOptions = DEFAULT_OPTIONS,
    progress: bool = True,
) -> FileSummary:
    """Predict for each row of a file, or of all files in a folder, and write files of these names.

    Parts that an earlier call has finished are not done again. `workers` are processes of one
    thread each, by default one for each core, and one for a GPU; a single worker works in this
    process.
    """
    if options.prefix and not source.run.task.accepts_prefix:
        raise InputError(
            f"prefix: the task {source.run.task.name} does not support it; leave it out"
        )
    if workers is not None and workers < 1:
        raise InputError(f"workers: must be at least 1, not {workers}; leave it out for all cores")
    # Ray is an extra, and takes seconds to import.
    cluster = import_module("regard.batch_prediction.ray_cluster") if ray else None
    files = find_files(inputs)
    check_apart(inputs, output)
    check_names(files, as_json=options.as_json)
    rows = {file.name: file.count_rows() for file in files}
    identity = {
        "run": digest_run(source.folder),
        "settings": settings_identity(source, options),
        "inputs": {file.name: digest_file(Path(file.path))._asdict() for file in files},
    }
    with closing(OutputFolder(output, identity)) as folder:
        setup = WorkerSetup(
            str(source.folder.resolve()),
            str(folder.parts_folder.resolve()),
            source.overrides,
            source.int8,
            options,
            source.run.chosen_engine,
            source.run.device,
        )
        with progress_bar("rows", sum(rows.values()), enabled=progress) as bar:
            work = FileWork(folder, files, rows, bar)
            with work.report_interruption():
                if cluster:
                    unfinished = [(f, work.parts[f.name]) for f in work.unfinished.values()]
                    lock = folder.lock.path.resolve()
                    work.collect(cluster.ray_results(setup, unfinished, workers, lock, bar.log))
                elif workers == 1 or (workers is None and source.run.device != "cpu"):
                    work.collect(single_results(source.run, setup, work.remaining_parts()))
                else:
                    with WorkerPool(workers or core_count(), setup, bar.log) as pool:
                        work.collect(pool.results(work.remaining_parts()))
        folder.remove_parts()
        return FileSummary(work.rows_done, work.faults)


def predict_run_files(
    run: Run,
    inputs: Path,
    output: Path,
    *,
    workers: int | None,
    ray: bool,
    prefix: str | None,
    as_json: bool,
    progress: bool,
) -> FileSummary:
    """Predict files with a run of this process; workers load a copy, which is removed."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=".run-") as folder:
        run.save(folder)
        int8 = any(uses_int8(parameter) for parameter in run.model.parameters())
        source = RunSource(run, Path(folder), int8=int8)
        return predict_files(
            source,
            inputs,
            output,
            workers=workers,
            ray=ray,
            options=AnswerOptions(prefix, as_json),
            progress=progress,
        )


def digest_run(folder: Path) -> str:
    """Return a checksum of the files of a run, or of a checkpoint and its run."""
    folders = [folder]
    if folder.parent.name == CHECKPOINTS_FOLDER:
        folders.append(folder.parent.parent)
    return checksum(
        {str(n): digests_to_json(read_manifest(f).files) for n, f in enumerate(folders)}
    )


def settings_identity(source: RunSource, options: AnswerOptions) -> JsonObject:
    """Return what changes the predictions, or the parts, for one run and one input."""
    return {
        "overrides": list(source.overrides),
        "int8": source.int8,
        "engine": source.run.chosen_engine,
        **options._asdict(),
        "part_rows": PART_ROWS,
        "part_bytes": PART_BYTES,
    }


def single_results(
    run: Run, setup: WorkerSetup, parts: Iterable[InputPart]
) -> Iterator[PartResult]:
    """Yield the results of parts that this process answers, with one thread."""
    worker, threads = PartWorker(setup, run), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from map(worker.finish, parts)
    finally:
        torch.set_num_threads(threads)


class FileWork:
    """The finished and the remaining parts of all files; a complete file is merged."""

    def __init__(
        self,
        folder: OutputFolder,
        files: Sequence[InputFile],
        rows: Mapping[str, int],
        bar: ProgressBar,
    ):
        self.folder, self.rows, self.bar = folder, rows, bar
        self.unfinished = {file.name: file for file in files}
        self.parts = {file.name: dict[int, int]() for file in files}  # rows of finished parts
        self.rows_left = dict(rows)
        self.faults, self.messages, self.start_time = 0, 0, time.monotonic()
        for file in files:
            if entry := folder.finished_file(file):
                self.add_part(file.name, 0, rows[file.name], entry["faults"])
                del self.unfinished[file.name]
            else:
                for part in folder.finished_parts(file).values():
                    self.add_part(file.name, part.start, part.rows, part.faults)
                self.merge_if_complete(file)
        self.rows_before = self.rows_done
        if self.rows_before:
            bar.log(f"{folder.folder}: {self.rows_before:,} rows are done already")
        self.show_progress()

    @property
    def total_rows(self) -> int:
        return sum(self.rows.values())

    @property
    def rows_done(self) -> int:
        return self.total_rows - sum(self.rows_left.values())

    def add_part(self, name: str, start: int, rows: int, faults: int) -> None:
        """Note a finished part; a cluster may report one twice."""
        if start not in self.parts[name]:
            self.parts[name][start] = rows
            self.rows_left[name] -= rows
            self.faults += faults

    def merge_if_complete(self, file: InputFile) -> None:
        if not self.rows_left[file.name]:
            self.folder.finish_file(file, self.rows[file.name])
            del self.unfinished[file.name]

    def remaining_parts(self) -> Iterator[InputPart]:
        """Yield the parts that are not finished."""
        for file in list(self.unfinished.values()):
            finished_parts = self.parts[file.name]
            yield from (p for p in file.read_parts() if finished_parts.get(p.start) != p.rows)

    def collect(self, results: Iterable[PartResult]) -> None:
        """Note each result, and merge files that are complete."""
        for result in results:
            self.add_part(result.name, result.start, result.rows, result.faults)
            self.show_messages(result.messages)
            self.show_progress()
            if result.name in self.unfinished:
                self.merge_if_complete(self.unfinished[result.name])
        for file in self.unfinished.values():
            raise InputError(f"{file.path}: was changed while it was read; give another folder")

    def show_messages(self, messages: Sequence[str]) -> None:
        """Print what is wrong with rows, up to a number of them."""
        for message in messages:
            self.messages += 1
            if self.messages <= MAX_MESSAGES:
                self.bar.log(f"regard: {message}")
            elif self.messages == MAX_MESSAGES + 1:
                self.bar.log("regard: further faults are counted only")

    def show_progress(self) -> None:
        seconds = max(time.monotonic() - self.start_time, 1e-3)
        speed = (self.rows_done - self.rows_before) / seconds
        self.bar.update(self.rows_done, f"{speed:,.0f} rows/s")

    @contextmanager
    def report_interruption(self) -> Generator[None]:
        """Say how to continue if the user interrupts the block."""
        try:
            yield
        except KeyboardInterrupt:
            self.bar.log(
                f"{self.folder.folder}: {self.rows_done:,} of {self.total_rows:,} rows are done; "
                "the same command does the others"
            )
            raise
