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

from regard.config.whole import told_of, write_whole

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

LINES, SHEET, EVENTS, PICTURE = LOGS = ("log.jsonl", "log.csv", "tensorboard", "loss.png")
COLUMNS: tuple[str, ...] = (
    *("kind", "step", "loss", "tokens", "seconds", "learning_rate", "gradient_norm"),
    *("metric", "best"),
)
TOLD = {  # what TensorBoard shows of an entry
    "step": ("loss", "learning_rate", "gradient_norm"),
    "dev": ("loss", "metric"),
}

Entry = dict[str, Any]
"""{"kind": "step", "number": 1, "loss": …} or {"kind": "dev", "step": 500, "loss": …}"""


class Log:
    """The log of a folder, to add to; every line is on the disk when `add` returns."""

    def __init__(self, folder: Path, *, tensorboard: bool = False, done: int = 0):
        self.files = [(folder / name).open("ab", buffering=0) for name in (LINES, SHEET)]
        self.events: SummaryWriter | None = None
        if tensorboard:
            made = summary_writer()
            # what TensorBoard has of later steps, from before a resume, it then forgets
            self.events = made(str(folder / EVENTS), purge_step=done + 1)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files:
            file.close()
        if self.events is not None:
            self.events.close()

    def add(self, kind: str, facts: Entry) -> None:
        entry = {"kind": kind, **facts}
        for file, text in zip(self.files, (f"{json.dumps(entry)}\n", sheet([entry])), strict=True):
            with told_of(Path(file.name)):
                written(file, text.encode())
        if self.events is not None:
            side = "train" if kind == "step" else kind
            for name in TOLD[kind]:
                self.events.add_scalar(f"{side}/{name}", entry[name], place(entry))
            if kind == "step":
                speed = entry["tokens"] / entry["seconds"]
                self.events.add_scalar("train/tokens_per_second", speed, place(entry))


def cut(folder: Path, done: int) -> None:
    """Take out of the logs what is about to be done again; the sheet is made anew."""
    lines = complete(folder / LINES)
    kept = [line for line in lines if place(json.loads(line)) <= done]
    write_whole(folder / LINES, "".join(kept).encode())
    head = ",".join(COLUMNS) + "\n"
    write_whole(folder / SHEET, (head + sheet(map(json.loads, kept))).encode())


def read(folder: Path) -> list[Entry]:
    """Every entry of a folder's log, in order."""
    return [json.loads(line) for line in complete(folder / LINES)]


def complete(path: Path) -> list[str]:
    """Whole lines; of one that was being written when the power went, nothing."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]


def written(file: FileIO, data: bytes) -> None:
    """All of it: a file without a buffer may take a part, as when the disk is full."""
    while data:
        data = data[file.write(data) :]


def sheet(entries: Iterable[Entry]) -> str:
    """Rows of CSV, without a head."""
    text = StringIO()
    rows = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    rows.writerows({**entry, "step": place(entry)} for entry in entries)
    return text.getvalue()


def place(entry: Entry) -> int:
    """The step of an entry, or after which it was."""
    return entry["number"] if entry["kind"] == "step" else entry["step"]


def summary_writer() -> "type[SummaryWriter]":
    """TensorBoard's writer; without the package `tensorboard`, a ModuleNotFoundError."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter
