"""The answers to one part of an input file, in the format of the file."""

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple

from regard.batch_prediction.input_parts import InputPart
from regard.batch_prediction.line_answers import (
    Answer,
    answer_fields,
    answer_records,
    parse_lines,
    prediction_fields,
)
from regard.batch_prediction.line_stream import Line, decode_line
from regard.data.corpus import Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import parse_json_object
from regard.run import Run
from regard.tasks.base import FieldValue, InputField
from regard.view.sanitize import escape_line

MAX_PART_MESSAGES = 20  # of faults that are reported in words


class AnswerOptions(NamedTuple):
    """The beginning of every output, and whether the answers to lines of text are JSON objects."""

    prefix: str | None = None
    as_json: bool = False


class PartAnswers(NamedTuple):
    """The answers to a part as bytes of an output file, and the rows without a prediction."""

    data: bytes
    faults: int
    messages: list[str]


def answer_part(run: Run, options: AnswerOptions, part: InputPart) -> PartAnswers:
    """Return the answers to the rows of a part."""
    match part.file.format:
        case "text":
            answers, data = answer_text(run, options, part)
        case "json_lines":
            answers, data = answer_json_lines(run, options, part)
        case "parquet":
            answers, data = answer_table(run, options, part)
    if part.file.is_gzip:
        data = gzip.compress(data, mtime=0)
    faults = [
        fault_message(answer, part, row)
        for row, answer in enumerate(answers)
        if isinstance(answer, InputError)
    ]
    return PartAnswers(data, len(faults), faults[:MAX_PART_MESSAGES])


def fault_message(error: InputError, part: InputPart, row: int) -> str:
    """Return the message of a fault with the place of its row."""
    location, message = part.file.row_location.format(part.start + row + 1), str(error)
    return message if location in message else f"{location}: {message}"


def decoded_lines(part: InputPart) -> list[Line]:
    """Return the text of each line of a part, or what is wrong with it."""
    location = part.file.row_location
    return [decode_line(line, n, location) for n, line in enumerate(part.lines(), part.start + 1)]


def answer_text(
    run: Run, options: AnswerOptions, part: InputPart
) -> tuple[Sequence[Answer], bytes]:
    """Answer each line with one line: a text, or with `as_json` an object."""
    lines, location = decoded_lines(part), part.file.row_location
    items = parse_lines(run, lines, location, first=part.start + 1, prefix=options.prefix)
    answers = answer_records(run, items)
    if options.as_json:
        pairs = zip(lines, answers, strict=True)
        return answers, json_lines([answer_fields(run, *pair) for pair in pairs])
    texts = [escape_line(a[1].text) if isinstance(a, tuple) else "" for a in answers]
    return answers, "".join(f"{text}\n" for text in texts).encode()


def answer_json_lines(
    run: Run, options: AnswerOptions, part: InputPart
) -> tuple[Sequence[Answer], bytes]:
    """Answer each object with the same object and the fields of its prediction."""
    rows, items = list[JsonObject | None](), list[Record | InputError | None]()
    for number, line in zip(count(part.start + 1), decoded_lines(part), strict=False):
        location = part.file.row_location.format(number)
        row, item = parse_row(run, options, line, location)
        rows.append(row)
        items.append(item)
    answers = answer_records(run, items)
    objects = [row_fields(run, *pair) for pair in zip(rows, answers, strict=True)]
    return answers, json_lines(objects)


def parse_row(
    run: Run, options: AnswerOptions, line: Line, location: str
) -> tuple[JsonObject | None, Record | InputError | None]:
    """Return the object of a line, as far as it is one, and its record or fault."""
    if isinstance(line, InputError) or not line.strip():
        return None, line if isinstance(line, InputError) else None
    values: JsonObject | None = None
    try:
        values = parse_json_object(line, location, "put one object on each line")
        return values, record_from_row(run, options, values, location)
    except InputError as error:
        return values or {"input": line}, error


def row_fields(run: Run, row: JsonObject | None, answer: Answer) -> JsonObject | None:
    """Return a row with the fields of its answer; None is an empty line."""
    if answer is None:
        return None
    if isinstance(answer, InputError):
        return {**(row or {"input": None}), "error": str(answer)}
    return {**(row or {}), **prediction_fields(run, *answer)}


def json_lines(objects: Sequence[JsonObject | None]) -> bytes:
    """Return one object a line; None is an empty line."""
    lines = ("" if row is None else json.dumps(row, ensure_ascii=False) for row in objects)
    return "".join(f"{line}\n" for line in lines).encode()


def record_from_row(
    run: Run, options: AnswerOptions, row: Mapping[str, Any], location: str
) -> Record:
    """Return the record of the input fields of a row; other fields are not read."""
    fields = run.task.input_fields
    if not fields:
        raise InputError(f"{location}: the task {run.task.name} has no fields; give a text file")
    names = [field.name for field in fields]
    if all(row.get(name) is None for name in names):
        expected, others = " or ".join(names), ", ".join(map(str, row)) or "none"
        raise InputError(f"{location}: no field {expected}; the fields are: {others}")
    values = {field.name: field_value(field, row, location) for field in fields}
    match list(values.values()):
        case [str(text)]:  # also the path of a picture
            record = run.task.parse(text, location)
        case _:
            record = run.task.to_record(values, location)
    return {**record, "prefix": options.prefix} if options.prefix else record


def field_value(field: InputField, row: Mapping[str, Any], location: str) -> FieldValue:
    """Return the checked value of an input field of a row."""
    value = row.get(field.name)
    if value is None and not field.is_required:
        return [] if field.kind == "list" else ""
    match field.kind, value:
        case "list", list() if all(isinstance(item, str) for item in value):
            return value
        case kind, str() if kind != "list":
            return value
        case _:
            expected = "a list of texts" if field.kind == "list" else "a text"
            problem = "is missing" if value is None else f"is {type(value).__name__}"
            raise InputError(f"{location}: {field.name} {problem}; give {expected}")


def answer_table(
    run: Run, options: AnswerOptions, part: InputPart
) -> tuple[Sequence[Answer], bytes]:
    """Answer a table with the same table, columns of the prediction, and a column of errors.

    Lists and objects of a prediction are columns of JSON text.
    """
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = arrow.ipc.open_stream(part.data).read_all()
    items = list[Record | InputError | None]()
    for number, row in enumerate(table.to_pylist(), part.start + 1):
        try:
            location = part.file.row_location.format(number)
            items.append(record_from_row(run, options, row, location))
        except InputError as error:
            items.append(error)
    answers = answer_records(run, items)
    objects = [prediction_fields(run, *a) if isinstance(a, tuple) else {} for a in answers]
    names = list(dict.fromkeys(name for fields in objects for name in fields))
    columns = {name: arrow.array([to_cell(row.get(name)) for row in objects]) for name in names}
    errors = [str(a) if isinstance(a, InputError) else None for a in answers]
    columns["error"] = arrow.array(errors, arrow.string())
    for name, column in columns.items():
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, column)
        else:
            table = table.append_column(name, column)
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return answers, buffer.getvalue()


def to_cell(value: object) -> object:
    """Return a value for a column of Parquet: lists and objects as JSON text."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
