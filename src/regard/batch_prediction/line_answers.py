"""The answer to each line: a prediction, a fault, or nothing for an empty line."""

from collections.abc import Sequence

from regard.batch_prediction.line_stream import Line
from regard.data.corpus import Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.run import Run
from regard.tasks.base import Prediction

Answer = tuple[Record, Prediction] | InputError | None
"""A record with its prediction, the fault of its line, or None for an empty line."""


def answer_records(run: Run, items: Sequence[Record | InputError | None]) -> list[Answer]:
    """Return the answer to each record; what is no record stays as it is."""
    records = [item for item in items if isinstance(item, dict)]
    try:
        predictions: Sequence[Prediction | InputError] = run.predict(records) if records else []
    except InputError as error:
        predictions = predict_halves(run, records, error)
    answers, rest = list[Answer](), iter(predictions)
    for item in items:
        if isinstance(item, dict):
            prediction = next(rest)
            is_fault = isinstance(prediction, InputError)
            answers.append(prediction if is_fault else (item, prediction))
        else:
            answers.append(item)
    return answers


def predict_halves(
    run: Run, records: Sequence[Record], error: InputError
) -> list[Prediction | InputError]:
    """Return the prediction or the fault of each record, where all together have failed."""
    if len(records) == 1:
        return [error]
    predictions, middle = list[Prediction | InputError](), len(records) // 2
    for half in (records[:middle], records[middle:]):
        try:
            predictions += run.predict(half)
        except InputError as fault:
            predictions += predict_halves(run, half, fault)
    return predictions


def parse_lines(
    run: Run,
    lines: Sequence[Line],
    location: str,
    *,
    first: int = 1,
    skip_empty: bool = True,
    prefix: str | None = None,
) -> list[Record | InputError | None]:
    """Return the record of each line, its fault, or None for an empty line.

    `first` is the number of the first line, and `location` the place of line {} in messages. A
    `prefix` begins every output.
    """
    items = list[Record | InputError | None]()
    for number, line in enumerate(lines, first):
        if isinstance(line, InputError):
            items.append(line)
        elif skip_empty and not line.strip():
            items.append(None)
        else:
            items.append(parse_line(run, line, location.format(number), prefix))
    return items


def parse_line(run: Run, line: str, location: str, prefix: str | None) -> Record | InputError:
    """Return the record of a line, or its fault."""
    try:
        record = run.task.parse(line, location)
    except InputError as error:
        return error
    return {**record, "prefix": prefix} if prefix else record


def answer_fields(run: Run, line: Line, answer: Answer) -> JsonObject:
    """Return the fields of the answer to a line, for JSON."""
    if isinstance(answer, InputError):
        return {"input": line if isinstance(line, str) else None, "error": str(answer)}
    if answer is None:
        return {"input": line, "text": ""}
    return {**answer[0], **prediction_fields(run, *answer)}


def prediction_fields(run: Run, record: Record, prediction: Prediction) -> JsonObject:
    """Return the fields of a prediction for JSON, also those that take time to compute."""
    return {**prediction.as_dict(), **run.task.details(record)}
