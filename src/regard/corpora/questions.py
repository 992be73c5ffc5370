"""Questions that a stretch of their context answers, from files.

    squad    SQuAD's JSON, 1.1 or 2.0: {"data": [{"paragraphs": [{"context", "qas": [{"id",
             "question", "answers": [{"text", "answer_start"}], "is_impossible"}]}]}]}
    jsonl    {"question", "context", "answers": [{"text", "answer_start"}]}, and "id" if you like;
             also with {"text": [...], "answer_start": [...]} as answers

Records are {"id", "question", "text": the context, "answers": [{"text", "start"}]}; a question
without an answer has none. All is gzipped where the name says so.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from regard.corpora.corpus import Record
from regard.corpora.files import Paths, suffix_of
from regard.corpora.labelled import ByHash, Placed, by_split, shares
from regard.corpora.lines import check_file, parsed_lines, shown, whole

Format = Literal["squad", "jsonl"]
SUFFIXES: dict[str, Format] = {".json": "squad", ".jsonl": "jsonl", ".ndjson": "jsonl"}
SHOWN = 40  # characters of a text in a message


def squad(path: Path | str) -> Iterator[Placed]:
    try:
        found = json.loads(whole(path))
    except json.JSONDecodeError as error:
        place = f"{shown(path)}:{error.lineno}"
        raise ValueError(f"{place}: not JSON ({error.msg}, column {error.colno})") from None
    name = shown(path)
    for a, article in enumerate(within(found, "data", name)):
        for p, paragraph in enumerate(within(article, "paragraphs", f"{name}: data[{a}]")):
            place = f"{name}: data[{a}].paragraphs[{p}]"
            for q, one in enumerate(within(paragraph, "qas", place)):
                if not isinstance(one, dict):
                    raise ValueError(f"{place}.qas[{q}]: not an object, but {cut(one)}")
                key = one.get("id", f"{a}.{p}.{q}")
                asked = {**one, "id": key, "context": paragraph.get("context")}
                yield f"{name}: question {key!r}", record_of(asked, f"{name}: question {key!r}")


def within(found: Any, name: str, place: str) -> list[Any]:
    """A list by its name in an object."""
    held = found.get(name) if isinstance(found, dict) else None
    if not isinstance(held, list):
        raise ValueError(f"{place}: there is no list {name!r} in it; see docs/tasks/answer.md")
    return held


def json_questions(path: Path | str) -> Iterator[Placed]:
    for number, (place, found) in enumerate(parsed_lines(path), 1):
        if not isinstance(found, dict):
            raise ValueError(f"{place}: not an object; see docs/tasks/answer.md for what it holds")
        if "id" in found:
            place = f"{place}: question {found['id']!r}"
        yield place, record_of({"id": str(number), **found}, place)


def record_of(found: Mapping[str, Any], place: str) -> Record:
    """A question with its context and its answers, each seen to be where it says."""
    for name in ("question", "context"):
        if not isinstance(found.get(name), str) or not found[name].strip():
            said = "is empty" if isinstance(found.get(name), str) else "is missing"
            raise ValueError(f"{place}: its {name} {said}; give one, or take the question out")
    context = found["context"]
    answers = [] if found.get("is_impossible") else listed(found.get("answers", []), place)
    return {
        "id": str(found["id"]),
        "question": found["question"],
        "text": context,
        "answers": [answer_of(one, context, place) for one in answers],
    }


def listed(answers: Any, place: str) -> list[Any]:
    """Answers one by one, however they are written."""
    if isinstance(answers, dict):
        texts, starts = answers.get("text"), answers.get("answer_start")
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            return [{"text": t, "answer_start": s} for t, s in zip(texts, starts, strict=True)]
    if not isinstance(answers, list):
        raise ValueError(f"{place}: answers must be a list of {{text, answer_start}}")
    return answers


def answer_of(one: Any, context: str, place: str) -> dict[str, Any]:
    if not isinstance(one, dict):
        raise ValueError(f"{place}: an answer must be {{text, answer_start}}, not {cut(one)}")
    text, start = one.get("text"), one.get("answer_start")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{place}: an answer has no text; for no answer, give no answers at all")
    if not isinstance(start, int) or isinstance(start, bool):
        raise ValueError(f"{place}: the answer {cut(text)} has no answer_start, a number")
    there = context[start : start + len(text)] if start >= 0 else ""
    if there != text:
        at = context.find(text)
        hint = "nor is it anywhere else" if at < 0 else f"but at {at}: correct answer_start"
        raise ValueError(
            f"{place}: the answer {cut(text)} is not in its context at character {start} "
            f"({cut(there)}), {hint}"
        )
    return {"text": text, "start": start}


def cut(text: Any) -> str:
    said = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return repr(said if len(said) <= SHOWN else f"{said[: SHOWN - 1]}…")


class Questions(ByHash):
    """A corpus in files of one format, one or more for each split.

    A dev or test that is not given is split off: a share `held_out` of train each, by a hash of the
    context, so that all questions of a context are in one split.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: Format | None = None,  # noqa: A002 (the word in the config)
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        self.format: Format = format or guessed(self.paths["train"][0])
        self.shares = shares(self.paths, held_out)
        for paths in self.paths.values():
            for path in paths:
                check_file(path)

    def describe(self) -> str:
        each = [f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"questions ({self.format}): {', '.join(each)}; licence as you know it"

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        for path in paths:
            yield from squad(path) if self.format == "squad" else json_questions(path)


def guessed(path: Path | str) -> Format:
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{path}: {suffix or 'no suffix'} tells no format ({known}); name one")
    return SUFFIXES[suffix]
