"""`regard predict`: one prediction for each line of input."""

import json
import sys
from io import BufferedIOBase
from itertools import chain
from typing import Annotated, cast

import typer
from rich.console import Console

from regard.batch_prediction.line_answers import Answer, answer_records, parse_lines
from regard.batch_prediction.line_stream import Line, read_chunks
from regard.cli.options import Int8Option, RunArgument, SetOption
from regard.data.corpus import Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.run import Run
from regard.tasks.doctor.texts import unknown_id
from regard.text.external import ExternalTokenizer
from regard.text.tokenizer import Tokenizer
from regard.view.highlight import render_highlighted
from regard.view.sanitize import escape_line, terminal_text
from regard.view.sequence import render_annotated_sequence
from regard.view.terminal import Surface

STDIN_LOCATION = "standard input:{}"
TEXT_FIELDS = ("source", "text", "prompt", "question")  # fields of records that a model reads


def predict(
    folder: RunArgument,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT…",
            help="Inputs, such as a sentence or photo.png. Default: lines of standard input.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object per input, with all outputs and their scores."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first input that has no prediction.")
    ] = False,
    prefix: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Beginning of every output; the model writes the rest."),
    ] = None,
    int8: Int8Option = False,
    overrides: SetOption = None,
) -> None:
    r"""Print one prediction for each INPUT, or for each line of standard input, in order.

    The input of an image run is the path of an image. An empty line has an empty prediction. So has
    a line with a fault: its error goes to standard error, and the exit code is 1. In a file or a
    pipe, a line break in a prediction is written as \n, a carriage return as \r, and a backslash as
    two, so that every prediction is one line. Lines of standard input are answered as they arrive,
    in bounded memory.
    """
    run, surface = Run.load(folder).override(overrides or ()), Surface.from_console(Console())
    if int8:
        run.quantize()
    if prefix and not run.task.accepts_prefix:
        raise InputError(f"--prefix does not support the task {run.task.name}; leave it out")
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


def answer_fields(run: Run, line: str | InputError, answer: Answer) -> JsonObject:
    """Return the fields of an answer for JSON."""
    if isinstance(answer, InputError):
        return {"input": line if isinstance(line, str) else None, "error": str(answer)}
    if answer is None:
        return {"input": line, "text": ""}
    record, prediction = answer
    return {**record, **prediction.as_dict(), **run.task.details(record)}


def print_answer(answer: Answer, surface: Surface) -> None:
    """Print an answer as text; what cannot be predicted is an empty line."""
    if answer is None or isinstance(answer, InputError):
        print()
        return
    prediction = answer[1]
    if prediction.spans and surface.ink in ("256", "truecolor"):
        print(render_highlighted(prediction.spans))
    elif prediction.annotation and surface.ink in ("256", "truecolor"):
        print(render_annotated_sequence(*prediction.annotation, surface), end="\n\n")
    else:
        text = terminal_text(prediction.text)
        print(text if sys.stdout.isatty() else escape_line(text))
