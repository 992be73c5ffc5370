"""`regard predict`: one prediction for each line of input."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from rich.console import Console

from regard.cli.options import Int8Option, RunArgument, SetOption
from regard.data.corpus import Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.run import Run
from regard.tasks.base import Prediction
from regard.tasks.doctor.texts import unknown_id
from regard.text.external import ExternalTokenizer
from regard.text.tokenizer import Tokenizer
from regard.view.highlight import render_highlighted
from regard.view.sanitize import escape_line, terminal_text
from regard.view.sequence import render_annotated_sequence
from regard.view.terminal import Surface

STDIN_LOCATION = "standard input:{}"
TEXT_FIELDS = ("source", "text", "prompt", "question")  # fields of records that a model reads

Answer = tuple[Record, Prediction] | InputError | None
"""A record with its prediction, the fault of its line, or None for an empty line."""


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
    two, so that every prediction is one line.
    """
    run, surface = Run.load(folder).override(overrides or ()), Surface.from_console(Console())
    if int8:
        run.quantize()
    if inputs:
        lines, location = list[str | InputError](inputs), "input {}"
    else:
        lines, location = decoded_lines(sys.stdin.buffer), STDIN_LOCATION
    strict = strict or len(lines) == 1
    if prefix and not run.task.accepts_prefix:
        raise InputError(f"--prefix does not support the task {run.task.name}; leave it out")
    answers, records = parse_lines(run, lines, location, skip_empty=not inputs)
    if strict and (error := next((a for a in answers if isinstance(a, InputError)), None)):
        raise error
    if prefix:
        records = {index: {**record, "prefix": prefix} for index, record in records.items()}
    try:
        predictions: Sequence[Prediction | InputError] = (
            run.predict(list(records.values())) if records else []
        )
    except InputError:
        if strict:
            raise
        predictions = [predict_alone(run, record) for record in records.values()]
    for (index, record), prediction in zip(records.items(), predictions, strict=True):
        is_fault = isinstance(prediction, InputError)
        answers[index] = prediction if is_fault else (record, prediction)
    for number, (line, answer) in enumerate(zip(lines, answers, strict=True), 1):
        report_problem(run, answer, location.format(number))
        if as_json:
            print(json.dumps(answer_fields(run, line, answer), ensure_ascii=False))
        else:
            print_answer(answer, surface)
    if any(isinstance(answer, InputError) for answer in answers):
        raise typer.Exit(1)


def parse_lines(
    run: Run, lines: Sequence[str | InputError], location: str, *, skip_empty: bool
) -> tuple[list[Answer], dict[int, Record]]:
    """Return the faults of lines, and the records of the other lines by their index."""
    answers: list[Answer] = [line if isinstance(line, InputError) else None for line in lines]
    records: dict[int, Record] = {}
    for index, line in enumerate(lines):
        if isinstance(line, str) and (line.strip() or not skip_empty):
            try:
                records[index] = run.task.parse(line, location.format(index + 1))
            except InputError as error:
                answers[index] = error
    return answers, records


def predict_alone(run: Run, record: Record) -> Prediction | InputError:
    """Return the prediction of one record, or its fault."""
    try:
        return run.predict([record])[0]
    except InputError as error:
        return error


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


def decoded_lines(lines: Iterable[bytes]) -> list[str | InputError]:
    """Decode lines of UTF-8; a line that is not UTF-8 is an error."""
    texts: list[str | InputError] = []
    for number, line in enumerate(lines, 1):
        try:
            encoding = "utf-8-sig" if number == 1 else "utf-8"  # some programs write a BOM
            texts.append(line.decode(encoding).rstrip("\r\n"))
        except UnicodeDecodeError as error:
            texts.append(
                InputError(
                    f"standard input:{number}: byte {error.start + 1} is "
                    f"0x{line[error.start]:02x}, which is not UTF-8; convert it, as with "
                    "iconv -f LATIN1 -t UTF-8"
                )
            )
    return texts
