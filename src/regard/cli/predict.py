"""`regard predict`: one prediction for each line of input."""

import json
import sys
from collections.abc import Callable
from functools import cache
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from regard.batch_prediction.line_answers import (
    Answer,
    answer_fields,
    answer_records,
    parse_lines,
)
from regard.batch_prediction.line_stream import Line, read_chunks
from regard.batch_prediction.part_answers import AnswerOptions
from regard.cli.loading import load_run
from regard.cli.options import DeviceOption, EngineOption, Int8Option, RunArgument, SetOption
from regard.data.corpus import Record
from regard.errors import InputError
from regard.run import Run
from regard.tasks.doctor.texts import unknown_id
from regard.text.external import ExternalTokenizer
from regard.text.tokenizer import Tokenizer
from regard.view.highlight import render_highlighted
from regard.view.sanitize import escape_line, terminal_text
from regard.view.sequence import render_annotated_sequence
from regard.view.terminal import Surface

if TYPE_CHECKING:
    from regard.batch_prediction.file_prediction import FileSummary

STDIN_LOCATION = "standard input:{}"
TEXT_FIELDS = ("source", "text", "prompt", "question")  # fields of records that a model reads

InputsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT…",
        help="Inputs, such as a sentence or photo.png. Default: lines of standard input.",
    ),
]
AsJsonOption = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object per input, with all outputs and their scores."
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at the first input that has no prediction.")
]
PrefixOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Beginning of every output; the model writes the rest."),
]
InputOption = Annotated[
    Path | None,
    typer.Option("--input", help="File, or folder of files: text, JSON lines or Parquet."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", help="Folder for files of the same names with the predictions."),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, help="Processes that work on --input. Default: one for each core."),
]
RayOption = Annotated[
    bool,
    typer.Option("--ray", help="Work on --input with Ray: the cluster at RAY_ADDRESS, or here."),
]


def predict(
    folder: RunArgument,
    inputs: InputsArgument = None,
    input_path: InputOption = None,
    output: OutputOption = None,
    workers: WorkersOption = None,
    ray: RayOption = False,
    as_json: AsJsonOption = False,
    strict: StrictOption = False,
    prefix: PrefixOption = None,
    int8: Int8Option = False,
    engine: EngineOption = "built-in",
    device: DeviceOption = None,
    overrides: SetOption = None,
) -> None:
    r"""Print one prediction for each TEXT, or for each line of standard input, in order.

    The input of an image run is the path of an image. An empty line has an empty prediction. So has
    a line with a fault: its error goes to standard error, and the exit code is 1. In a file or a
    pipe, a line break in a prediction is written as \n, a carriage return as \r, and a backslash as
    two, so that every prediction is one line. Lines of standard input are answered as they arrive,
    in bounded memory.

    With --input and --output, files of any size are answered by several processes. Lines of text
    are answered as above. Objects of JSON lines and rows of Parquet get the fields of --json. The
    same command continues what was interrupted.
    """
    check_options(inputs, input_path, output, strict=strict, needs_input=bool(workers or ray))
    run = load_run(folder, overrides or (), device=device, int8=int8, engine=engine)
    surface = cache(terminal_surface)
    if prefix and not run.task.accepts_prefix:
        raise InputError(f"--prefix does not support the task {run.task.name}; leave it out")
    if input_path and output:
        from regard.batch_prediction.file_prediction import RunSource, predict_files

        source = RunSource(run, folder, tuple(overrides or ()), int8)
        options = AnswerOptions(prefix, as_json)
        summary = predict_files(
            source, input_path, output, workers=workers, ray=ray, options=options
        )
        finish_files(summary, output)
        return
    location = "input {}" if inputs else STDIN_LOCATION
    stream = cast("BufferedIOBase", sys.stdin.buffer)
    chunks = iter([list[Line](inputs)]) if inputs else read_chunks(stream, location)
    number, has_faults = 1, False
    for chunk in chunks:
        items = parse_lines(
            run, chunk, location, first=number, skip_empty=not inputs, prefix=prefix
        )
        answers = answer_records(run, items)
        if number == len(chunk) == 1 and isinstance(answers[0], InputError):
            following = next(chunks, None)  # a single line is strict: is there another?
            strict = strict or following is None
            chunks = chain([following] if following else [], chunks)
        for line, answer in zip(chunk, answers, strict=True):
            if strict and isinstance(answer, InputError):
                raise answer
            report_problem(run, answer, location.format(number))
            if as_json:
                print(json.dumps(answer_fields(run, line, answer), ensure_ascii=False))
            else:
                print_answer(answer, surface)
            number, has_faults = number + 1, has_faults or isinstance(answer, InputError)
        sys.stdout.flush()
    if has_faults:
        raise typer.Exit(1)


def check_options(
    inputs: list[str] | None,
    input_path: Path | None,
    output: Path | None,
    *,
    strict: bool,
    needs_input: bool,
) -> None:
    """Refuse options that have no effect on each other."""
    if input_path is None:
        if output is not None or needs_input:
            raise InputError("--output, --workers and --ray need --input; name a file or a folder")
    elif output is None:
        raise InputError("--input needs --output; name a folder for the predictions")
    elif inputs or strict:
        option = "--strict" if strict else "TEXT"
        raise InputError(f"{option} does not go with --input; leave one of them out")


def finish_files(summary: "FileSummary", output: Path) -> None:
    """Print how many rows were predicted; exit with 1 if some have no prediction."""
    faults = f"; {summary.faults:,} of them have no prediction" if summary.faults else ""
    print(f"{output}: {summary.rows:,} rows{faults}", file=sys.stderr)
    if summary.faults:
        raise typer.Exit(1)


def report_problem(run: Run, answer: Answer, location: str) -> None:
    """Print the fault of a line, or a warning if the model knows no token of it."""
    if isinstance(answer, InputError):
        message = str(answer)
        message = message if location in message else f"{location}: {message}"
    elif answer is not None and is_unknown(run, answer[0]):
        message = f"{location}: the vocabulary of the run has none of these words; a guess follows"
    else:
        return
    print(f"regard: {terminal_text(message)}", file=sys.stderr)


def is_unknown(run: Run, record: Record) -> bool:
    """Return whether every token of the text that the model reads is unknown."""
    tokenizer = run.vocabularies.get("source", run.vocabularies.get("text"))
    text = next((record[name] for name in TEXT_FIELDS if isinstance(record.get(name), str)), "")
    if not text or not isinstance(tokenizer, Tokenizer | ExternalTokenizer):
        return False
    ids = tokenizer.encode_ids([text])[0]
    return bool(ids) and all(token == unknown_id(tokenizer) for token in ids)


def terminal_surface() -> Surface:
    """Return the surface of standard output."""
    from rich.console import Console  # slow to import, and most predictions have no colors

    return Surface.from_console(Console())


def print_answer(answer: Answer, surface: Callable[[], Surface]) -> None:
    """Print an answer as text; what cannot be predicted is an empty line."""
    if answer is None or isinstance(answer, InputError):
        print()
        return
    prediction = answer[1]
    if prediction.spans and surface().ink in ("256", "truecolor"):
        print(render_highlighted(prediction.spans))
    elif prediction.annotation and surface().ink in ("256", "truecolor"):
        print(render_annotated_sequence(*prediction.annotation, surface()), end="\n\n")
    else:
        text = terminal_text(prediction.text)
        print(text if sys.stdout.isatty() else escape_line(text))
