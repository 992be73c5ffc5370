"""Questions answered by a span of their context, from files.

    squad    SQuAD's JSON, 1.1 or 2.0: {"data": [{"paragraphs": [{"context", "qas": [{"id",
             "question", "answers": [{"text", "answer_start"}], "is_impossible"}]}]}]}
    jsonl    {"question", "context", "answers": [{"text", "answer_start"}]}, and optionally "id";
             answers may also be {"text": [...], "answer_start": [...]}

Records are {"id", "question", "text": the context, "answers": [{"text", "start"}]}; `answers` is
empty for unanswerable questions. Files ending in .gz are decompressed.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from regard.data.corpus import Record
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
)
from regard.data.formats.lines import check_file, display_name, parse_json_lines, read_text
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths, format_from_suffix
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import parse_json

QuestionFormat = Literal["squad", "jsonl"]
FORMAT_BY_SUFFIX: dict[str, QuestionFormat] = {
    ".json": "squad",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
MAX_EXCERPT_CHARACTERS = 40  # of a text in a message


def read_squad(path: Path | str) -> Iterator[LocatedRecord]:
    name = display_name(path)
    data = parse_json(read_text(path), name)
    for a, article in enumerate(list_field(data, "data", name)):
        for p, paragraph in enumerate(list_field(article, "paragraphs", f"{name}: data[{a}]")):
            location = f"{name}: data[{a}].paragraphs[{p}]"
            context = paragraph.get("context") if isinstance(paragraph, dict) else None
            for q, question in enumerate(list_field(paragraph, "qas", location)):
                if not isinstance(question, dict):
                    raise InputError(f"{location}.qas[{q}]: not an object ({excerpt(question)})")
                key = question.get("id", f"{a}.{p}.{q}")
                entry = {**question, "id": key, "context": context}
                yield (
                    f"{name}: question {key!r}",
                    question_record(entry, f"{name}: question {key!r}"),
                )


def list_field(data: object, name: str, location: str) -> list[object]:
    """Return a list by its name in an object."""
    values = data.get(name) if isinstance(data, dict) else None
    if not isinstance(values, list):
        raise InputError(f"{location}: no list {name!r}; see docs/tasks/answer.md")
    return values


def read_json_questions(path: Path | str, skipped: SkippedRows) -> Iterator[LocatedRecord]:
    for number, (location, data) in enumerate(parse_json_lines(path, skipped=skipped), 1):
        with skipped.row(location):
            if not isinstance(data, dict):
                raise InputError(
                    f"{location}: not an object; see docs/tasks/answer.md for its fields"
                )
            if "id" in data:
                location = f"{location}: question {data['id']!r}"
            yield location, question_record({"id": str(number), **data}, location)


def question_record(data: JsonObject, location: str) -> Record:
    """Build a record, and check that each answer is at its position in the context."""
    for name in ("question", "context"):
        if not isinstance(data.get(name), str) or not data[name].strip():
            problem = "is empty" if isinstance(data.get(name), str) else "is missing"
            raise InputError(f"{location}: its {name} {problem}; add it, or remove the question")
    context = data["context"]
    answers = [] if data.get("is_impossible") else answer_list(data.get("answers", []), location)
    return {
        "id": str(data["id"]),
        "question": data["question"],
        "text": context,
        "answers": [checked_answer(answer, context, location) for answer in answers],
    }


def answer_list(answers: object, location: str) -> list[object]:
    """Return a list of {text, answer_start} from either form of answers."""
    if isinstance(answers, dict):
        texts, starts = answers.get("text"), answers.get("answer_start")
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            return [
                {"text": text, "answer_start": start}
                for text, start in zip(texts, starts, strict=True)
            ]
    if not isinstance(answers, list):
        raise InputError(f"{location}: answers must be a list of {{text, answer_start}}")
    return answers


def checked_answer(answer: object, context: str, location: str) -> JsonObject:
    """Return {text, start}, or raise an error if the text is not at its position."""
    if not isinstance(answer, dict):
        raise InputError(
            f"{location}: an answer must be {{text, answer_start}}, not {excerpt(answer)}"
        )
    text, start = answer.get("text"), answer.get("answer_start")
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            f"{location}: an answer has no text; for unanswerable questions, give an empty list"
        )
    if not isinstance(start, int) or isinstance(start, bool):
        raise InputError(
            f"{location}: the answer {excerpt(text)} has no answer_start; give a number"
        )
    actual = context[start : start + len(text)] if start >= 0 else ""
    if actual != text:
        position = context.find(text)
        hint = (
            "nor anywhere else; correct its text"
            if position < 0
            else f"but at {position}; correct answer_start"
        )
        raise InputError(
            f"{location}: the answer {excerpt(text)} is not in its context at character {start} "
            f"({excerpt(actual)}), {hint}"
        )
    return {"text": text, "start": start}


def excerpt(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return repr(
        text if len(text) <= MAX_EXCERPT_CHARACTERS else f"{text[: MAX_EXCERPT_CHARACTERS - 1]}…"
    )


class QuestionFiles(HashSplitFiles):
    """A corpus in files of one format, one or more for each split.

    A missing dev or test is a share `held_out` of train, by a hash of the context, so that all
    questions of a context are in one split.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: QuestionFormat | None = None,  # noqa: A002 (the word in the config)
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        self.format: QuestionFormat = format or format_from_suffix(
            self.paths["train"][0], FORMAT_BY_SUFFIX
        )
        self.shares = held_out_shares(self.paths, held_out)
        for paths in self.paths.values():
            for path in paths:
                check_file(path)

    def describe(self) -> str:
        return f"questions ({self.format}): {self.describe_files()}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        for path in paths:
            if self.format == "squad":
                yield from read_squad(path)
            else:
                yield from read_json_questions(path, self.skipped)
