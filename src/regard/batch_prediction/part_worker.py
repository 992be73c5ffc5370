"""A worker: loads a run once, answers parts, and writes each answered part to the output folder.

    python -m regard.batch_prediction.part_worker

reads messages from standard input, and writes a line of JSON for each part. Its first message is
the setup. A message is its length in 8 bytes, and its bytes. The process ends with its input.
"""

import json
import os
import sys
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import IO, NamedTuple, cast

import torch

from regard.batch_prediction.input_parts import InputPart
from regard.batch_prediction.output_folder import write_part
from regard.batch_prediction.part_answers import AnswerOptions, answer_part
from regard.errors import InputError
from regard.files import JsonObject
from regard.run import Run
from regard.tasks.engine_choice import EngineName

LENGTH_BYTES = 8


class WorkerSetup(NamedTuple):
    """The run of a worker, with what changes its predictions, and the folder for its parts."""

    run_folder: str
    parts_folder: str
    overrides: tuple[str, ...] = ()
    int8: bool = False
    options: AnswerOptions = AnswerOptions()
    engine: EngineName = "built-in"
    device: str = "cpu"

    def to_bytes(self) -> bytes:
        return json.dumps(self._asdict()).encode()

    @classmethod
    def from_bytes(cls, message: bytes) -> "WorkerSetup":
        values: JsonObject = json.loads(message)
        values["overrides"] = tuple(values["overrides"])
        return cls(**{**values, "options": AnswerOptions(*values["options"])})

    def load_run(self) -> Run:
        """Load the run, with its changed settings."""
        run = Run.load(self.run_folder, device=self.device).override(self.overrides)
        return (run.quantize() if self.int8 else run).use_engine(self.engine)


class PartResult(NamedTuple):
    """A part that is finished: its file, its rows, and what is wrong with some of them."""

    name: str
    start: int
    rows: int
    faults: int
    messages: list[str]


class PartWorker:
    """A loaded run that answers parts, and writes the answers."""

    def __init__(self, setup: WorkerSetup, run: Run | None = None):
        self.setup, self.run = setup, run or setup.load_run()

    def finish(self, part: InputPart) -> PartResult:
        """Answer a part, write its answers, and return what was done."""
        answers = answer_part(self.run, self.setup.options, part)
        write_part(Path(self.setup.parts_folder, part.file.name), part, answers)
        return PartResult(part.file.name, part.start, part.rows, answers.faults, answers.messages)


def write_message(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(LENGTH_BYTES, "big") + message)
    stream.flush()


def read_message(stream: BufferedIOBase) -> bytes | None:
    """Return the next message, or None at the end of the stream."""
    length = stream.read(LENGTH_BYTES)
    message = stream.read(int.from_bytes(length, "big"))
    return message if len(length) == LENGTH_BYTES else None


def main() -> None:
    """Answer the parts of standard input until it ends."""
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not come between results
    torch.set_num_threads(1)
    stream = cast("BufferedReader", sys.stdin.buffer)
    setup = read_message(stream)
    worker: PartWorker | None = None
    while setup is not None and (message := read_message(stream)) is not None:
        try:
            worker = worker or PartWorker(WorkerSetup.from_bytes(setup))
            reply: JsonObject = worker.finish(InputPart.from_bytes(message))._asdict()
        except (InputError, OSError) as error:
            reply = {"error": str(error)}
        try:
            results.write(json.dumps(reply).encode() + b"\n")
            results.flush()
        except BrokenPipeError:  # the command was killed; its next call does the rest
            os._exit(1)


if __name__ == "__main__":
    main()
