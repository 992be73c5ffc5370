"""The log of a training: an entry for each step and each validation.

`log.jsonl` is complete; plots are drawn from it. `log.csv` has the same for a spreadsheet. With
train.tensorboard, `tensorboard` is a folder of events.
"""

import csv
import json
from collections.abc import Iterable
from io import FileIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import InputError
from regard.files import JsonObject, explain_write_errors, write_atomic
from regard.parsing import decode_utf8, parse_json_object

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
TENSORBOARD_SCALARS = {  # by kind of entry
    "step": ("loss", "learning_rate", "gradient_norm"),
    "dev": ("loss", "metric"),
}

LogEntry = JsonObject
"""{"kind": "step", "number": 1, "loss": …} or {"kind": "dev", "step": 500, "loss": …}"""


class Log:
    """The log of a folder, open for writing; it is not buffered."""

    def __init__(self, folder: Path, *, tensorboard: bool = False, steps_done: int = 0):
        self.files = [(folder / name).open("ab", buffering=0) for name in (LOG_FILE, CSV_FILE)]
        self.event_writer: SummaryWriter | None = None
        if tensorboard:
            writer_class = summary_writer()
            # purge_step hides events of later steps, which were written before a resume
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


def truncate_log(folder: Path, steps_done: int, *, validated: bool = True) -> None:
    """Remove entries after `steps_done`, which a resumed training repeats.

    If the state was not `validated` after its last step, that validation is repeated, too.
    """
    last = {"step": steps_done, "dev": steps_done if validated else steps_done - 1}
    entries = read_log(folder)
    kept_entries = [entry for entry in entries if entry_step(entry) <= last[entry["kind"]]]
    text = "".join(f"{json.dumps(entry)}\n" for entry in kept_entries)
    write_atomic(folder / LOG_FILE, text.encode())
    header = ",".join(COLUMNS) + "\n"
    write_atomic(folder / CSV_FILE, (header + csv_rows(kept_entries)).encode())


def read_log(folder: Path) -> list[LogEntry]:
    """Return the entries of a folder's log, in order."""
    path = folder / LOG_FILE
    lines = enumerate(complete_lines(path), 1)
    return [parse_entry(line, f"{path}:{number}") for number, line in lines]


def parse_entry(line: str, location: str) -> LogEntry:
    """Return the entry of a line; refuse a line that `Log` has not written."""
    hint = "remove this line, which is not of a training"
    entry = parse_json_object(line, location, hint)
    step = entry.get("number" if entry.get("kind") == "step" else "step")
    has_loss = isinstance(entry.get("loss"), int | float)
    if str(entry.get("kind")) not in TENSORBOARD_SCALARS or type(step) is not int or not has_loss:
        raise InputError(f"{location}: no step and loss; {hint}")
    return entry


def complete_lines(path: Path) -> list[str]:
    """Return the lines of a file, without a last line that was not completely written."""
    if not path.is_file():
        return []
    lines = decode_utf8(path.read_bytes(), str(path)).split("\n")
    return [f"{line}\n" for line in lines[:-1]]


def write_all(file: FileIO, data: bytes) -> None:
    """Write all bytes: `write` of an unbuffered file may write a part, as on a full disk."""
    while data:
        data = data[file.write(data) :]


def csv_rows(entries: Iterable[LogEntry]) -> str:
    """Return entries as CSV, without a header."""
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writerows({**entry, "step": entry_step(entry)} for entry in entries)
    return text.getvalue()


def entry_step(entry: LogEntry) -> int:
    """Return the step of an entry, or the step before a validation."""
    return entry["number"] if entry["kind"] == "step" else entry["step"]


def summary_writer() -> "type[SummaryWriter]":
    """Return TensorBoard's writer; raise ModuleNotFoundError if it is not installed."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter
