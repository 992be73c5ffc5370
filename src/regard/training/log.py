"""What happened in a training, a line for each step and each validation.

log.jsonl is what others are made from; log.csv is the same for a spreadsheet, and `tensorboard` a
folder of events, if it is wished for.
"""

import csv
import json
from collections.abc import Iterable
from io import FileIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.files import explain_write_errors, write_atomic

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

LOG_FILE, CSV_FILE, TENSORBOARD_FOLDER, LOSS_PLOT = LOG_FILES = (
    "log.jsonl",
    "log.csv",
    "tensorboard",
    "loss.png",
)
COLUMNS: tuple[str, ...] = (
    *("kind", "step", "loss", "tokens", "seconds", "learning_rate", "gradient_norm"),
    *("metric", "best"),
)
TENSORBOARD_SCALARS = {  # what TensorBoard shows of an entry
    "step": ("loss", "learning_rate", "gradient_norm"),
    "dev": ("loss", "metric"),
}

LogEntry = dict[str, Any]
"""{"kind": "step", "number": 1, "loss": …} or {"kind": "dev", "step": 500, "loss": …}"""


class Log:
    """The log of a folder, to add to; every line is on the disk when `add` returns."""

    def __init__(self, folder: Path, *, tensorboard: bool = False, steps_done: int = 0):
        self.files = [(folder / name).open("ab", buffering=0) for name in (LOG_FILE, CSV_FILE)]
        self.event_writer: SummaryWriter | None = None
        if tensorboard:
            writer_class = summary_writer()
            # what TensorBoard has of later steps, from before a resume, it then forgets
            self.event_writer = writer_class(
                str(folder / TENSORBOARD_FOLDER), purge_step=steps_done + 1
            )

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files:
            file.close()
        if self.event_writer is not None:
            self.event_writer.close()

    def add(self, kind: str, values: LogEntry) -> None:
        entry = {"kind": kind, **values}
        for file, text in zip(
            self.files, (f"{json.dumps(entry)}\n", csv_rows([entry])), strict=True
        ):
            with explain_write_errors(Path(file.name)):
                write_all(file, text.encode())
        if self.event_writer is not None:
            scope = "train" if kind == "step" else kind
            for name in TENSORBOARD_SCALARS[kind]:
                self.event_writer.add_scalar(f"{scope}/{name}", entry[name], entry_step(entry))
            if kind == "step":
                speed = entry["tokens"] / entry["seconds"]
                self.event_writer.add_scalar("train/tokens_per_second", speed, entry_step(entry))


def truncate_log(folder: Path, steps_done: int) -> None:
    """Take out of the logs what is about to be done again; the sheet is made anew."""
    lines = complete_lines(folder / LOG_FILE)
    kept_lines = [line for line in lines if entry_step(json.loads(line)) <= steps_done]
    write_atomic(folder / LOG_FILE, "".join(kept_lines).encode())
    header = ",".join(COLUMNS) + "\n"
    write_atomic(folder / CSV_FILE, (header + csv_rows(map(json.loads, kept_lines))).encode())


def read_log(folder: Path) -> list[LogEntry]:
    """Every entry of a folder's log, in order."""
    return [json.loads(line) for line in complete_lines(folder / LOG_FILE)]


def complete_lines(path: Path) -> list[str]:
    """Whole lines; of one that was being written when the power went, nothing."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]


def write_all(file: FileIO, data: bytes) -> None:
    """All of it: a file without a buffer may take a part, as when the disk is full."""
    while data:
        data = data[file.write(data) :]


def csv_rows(entries: Iterable[LogEntry]) -> str:
    """Rows of CSV, without a head."""
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writerows({**entry, "step": entry_step(entry)} for entry in entries)
    return text.getvalue()


def entry_step(entry: LogEntry) -> int:
    """The step of an entry, or after which it was."""
    return entry["number"] if entry["kind"] == "step" else entry["step"]


def summary_writer() -> "type[SummaryWriter]":
    """TensorBoard's writer; without the package `tensorboard`, a ModuleNotFoundError."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter
