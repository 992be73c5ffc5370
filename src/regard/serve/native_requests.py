"""Requests of the API of regard: their bodies, checked for size, become records."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.data.corpus import Record
from regard.files import JsonObject
from regard.serve.limits import ApiError, Limits
from regard.serve.served import InputValue, ServedRun

MAX_PREFIX_TOKENS = 4096
TOKENS_READ_FACTOR = 2  # a model may cut an input of so many times the tokens of a map
ESCAPED_CHARACTER = re.compile(r"\\u([0-9a-f]{4})")
MapFormat = Literal["json", "viewer", "npz", "html"]


class Body(BaseModel):
    """A request body; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class SearchBody(Body):
    """A body that may say how an output is found, and how it begins."""

    set: list[str] = Field(
        default=[],
        max_length=16,
        description="Settings to change for this call.",
        examples=[["decode.kind=greedy"]],
    )

    prefix: str | Annotated[list[str], Field(max_length=MAX_PREFIX_TOKENS)] | None = Field(
        default=None,
        description="Beginning of the output: a text, or output tokens of an attention map, "
        "for runs with `accepts_prefix`. The token of the end completes the output.",
        examples=["1994-", ["1", "9", "9"]],
    )


class PredictBody(SearchBody):
    """Inputs for a run, or the numbers of examples of its data."""

    inputs: list[InputValue] = Field(
        default=[],
        description="Lines of text, or objects with the input fields of the run; images in base64.",
        examples=[["3 May 1994", "May 5th, 2001"]],
    )
    examples: list[Annotated[int, Field(ge=0)]] = Field(
        default=[], description="Indices of examples, from GET /api/runs/{name}/examples."
    )
    stream: bool = Field(
        default=False, description="Send the text of one input as server-sent events."
    )


class OneInputBody(SearchBody):
    """One input, or one example of the data."""

    input: InputValue | None = Field(default=None, examples=["3 May 1994"])
    example: Annotated[int, Field(ge=0)] | None = None


class AttentionBody(OneInputBody):
    """One input whose attention is wanted."""

    format: MapFormat | None = Field(
        default=None, description="Format of the map; the query may say it too."
    )
    target: str | None = Field(
        default=None, description="Output to show instead of the prediction of the model."
    )


class CounterfactualBody(OneInputBody):
    """One input, and edits of the attention."""

    ablate: list[str] = Field(
        default=[], max_length=64, description="Heads to remove: L1 or L1.H2, counted from 1."
    )
    force: list[str] = Field(
        default=[],
        max_length=64,
        description="Links to force, for runs with `accepts_links`: WRITTEN->READ, two words.",
        examples=[["Mai->May"]],
    )


class ScoreBody(Body):
    """Records with targets, to be scored."""

    records: list[JsonObject] = Field(
        min_length=1, examples=[[{"source": "3 May 1994", "target": "1994-05-03"}]]
    )


def input_records(
    served: ServedRun,
    inputs: Sequence[InputValue],
    examples: Sequence[int],
    prefix: str | Sequence[str] | None = None,
) -> list[Record]:
    """Return the records of a request, after a check of its size."""
    check_count(len(inputs) + len(examples), served.limits)
    if not inputs and not examples:
        raise ApiError(422, "inputs: give at least one")
    characters = 0 if served.reads_images else sum(len(str(value)) for value in inputs)
    characters += len("".join(prefix or ""))
    check_characters(characters, served.limits)
    records = [served.to_record(value, f"input {n}") for n, value in enumerate(inputs, 1)]
    for index in examples:
        if index >= len(served.examples):
            raise ApiError(404, f"examples: there is no example {index}")
        records.append(served.examples[index])
    return records if not prefix else [with_prefix(served, record, prefix) for record in records]


def with_prefix(served: ServedRun, record: Record, prefix: str | Sequence[str]) -> Record:
    """Return a record whose output begins with a prefix."""
    task = served.run.task
    if not task.accepts_prefix:
        raise ApiError(400, f"prefix: the task {task.name} does not write tokens; leave it out")
    is_text = isinstance(prefix, str)
    return {**record, "prefix": prefix if is_text else [visible_token(token) for token in prefix]}


def visible_token(token: str) -> str:
    """Return a token of the viewer's data as the vocabulary has it: `\\u000a` is a line break."""

    def character(match: re.Match[str]) -> str:
        original = chr(int(match[1], 16))
        return match[0] if original.isprintable() else original

    return ESCAPED_CHARACTER.sub(character, token)


def check_map_size(served: ServedRun, record: Record) -> None:
    """Refuse a long input before its attention is computed: it grows with the square."""
    tokens = max((served.count_tokens(v) for v in record.values() if isinstance(v, str)), default=0)
    if tokens > TOKENS_READ_FACTOR * served.limits.max_map_tokens:
        raise ApiError(413, f"{tokens} tokens; a map has at most {served.limits.max_map_tokens}")


def check_count(count: int, limits: Limits) -> None:
    if count > limits.max_inputs:
        raise ApiError(413, f"{count} inputs; at most {limits.max_inputs} at once")


def check_characters(count: int, limits: Limits) -> None:
    if count > limits.max_characters:
        raise ApiError(413, f"inputs: more than {limits.max_characters:,} characters")
