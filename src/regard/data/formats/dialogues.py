"""Dialogues from files: turns of user and system alternate, the user first.

    txt      one turn a line, a blank line after each dialogue
    jsonl    {"turns": ["…", "…"]}, or with a database {"exchanges": [{"user": "…", "wishes":
             {"food": "thai"}, "reply": "…"}], "goal": {"food": "thai"}}; "wishes" is the belief
             state: all slot values that the user has given so far

Records are {"turns": [...], "text": the turns, one a line}, with "wishes" (one belief an exchange)
and "goal" if the file has them. Files ending in .gz are decompressed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from regard.data.corpus import Record
from regard.data.database import Database
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
)
from regard.data.formats.lines import check_file, display_name, parse_json_lines, read_lines
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths, format_from_suffix
from regard.errors import InputError
from regard.files import JsonObject

DialogueFormat = Literal["txt", "jsonl"]
FORMAT_BY_SUFFIX: dict[str, DialogueFormat] = {
    ".txt": "txt",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}
SlotValues = dict[str, str]


def dialogue_record(
    turns: Sequence[str],
    beliefs: Sequence[SlotValues] | None = None,
    goal: Mapping[str, str] | None = None,
) -> Record:
    cleaned_turns = [" ".join(turn.split()) for turn in turns]
    record: Record = {"turns": cleaned_turns, "text": "\n".join(cleaned_turns)}
    if beliefs is not None:
        record["wishes"] = list(beliefs)
    return record if goal is None else {**record, "goal": dict(goal)}


def read_dialogue_lines(path: Path | str) -> Iterator[LocatedRecord]:
    turns, first_line = list[str](), 0
    for number, line in enumerate([*read_lines(path), ""], 1):
        if line.strip():
            first_line = first_line if turns else number
            turns.append(line)
        elif turns:
            yield f"{display_name(path)}:{first_line}", dialogue_record(turns)
            turns = []


def read_dialogue_json(path: Path | str, skipped: SkippedRows) -> Iterator[LocatedRecord]:
    for location, data in parse_json_lines(path, skipped=skipped):
        with skipped.row(location):
            yield location, record_from_object(data, location)


def record_from_object(data: object, location: str) -> Record:
    """Build a record from an object with turns or exchanges."""
    if not isinstance(data, dict) or not {"turns", "exchanges"} & set(data):
        raise InputError(f"{location}: must be an object with turns or exchanges")
    if "turns" not in data:
        return record_from_exchanges(data, location)
    turns = data["turns"]
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise InputError(f"{location}: turns must be a list of texts")
    return dialogue_record(turns)


def record_from_exchanges(data: JsonObject, location: str) -> Record:
    turns, beliefs = list[str](), list[SlotValues]()
    if not isinstance(data["exchanges"], list):
        raise InputError(f"{location}: exchanges must be a list")
    for number, exchange in enumerate(data["exchanges"], 1):
        exchange_location = f"{location}: exchange {number}"
        if not isinstance(exchange, dict):
            raise InputError(f"{exchange_location}: must be an object with user, wishes and reply")
        for name in ("user", "reply"):
            if not isinstance(exchange.get(name), str):
                raise InputError(f"{exchange_location}: {name} must be a text")
            turns.append(exchange[name])
        beliefs.append(to_slot_values(exchange.get("wishes", {}), f"{exchange_location}: wishes"))
    goal = data.get("goal")
    return dialogue_record(
        turns, beliefs, None if goal is None else to_slot_values(goal, f"{location}: goal")
    )


def to_slot_values(values: object, location: str) -> SlotValues:
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise InputError(f"{location} must be an object of texts, such as {{'food': 'thai'}}")
    return dict(values)


class DialogueFiles(HashSplitFiles):
    """A corpus in files of one format, optionally with the database of its dialogues.

    A missing dev or test is a share `held_out` of train, by a hash of the text.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: DialogueFormat | None = None,  # noqa: A002 (the word in the config)
        database: str | None = None,
        slot_columns: Sequence[str] | None = None,
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        self.format: DialogueFormat = format or format_from_suffix(
            self.paths["train"][0], FORMAT_BY_SUFFIX
        )
        self.shares = held_out_shares(self.paths, held_out)
        for paths in self.paths.values():
            for path in paths:
                check_file(path)
        self.database = (
            Database([], []) if database is None else Database.read(database, slot_columns or ())
        )

    def describe(self) -> str:
        rows = f", database of {len(self.database.rows)} rows" if self.database else ""
        return f"dialogues ({self.format}): {self.describe_files()}{rows}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        for path in paths:
            located_records = (
                read_dialogue_lines(path)
                if self.format == "txt"
                else read_dialogue_json(path, self.skipped)
            )
            for location, record in located_records:
                with self.skipped.row(location):
                    yield location, self._check_record(location, record)

    def _check_record(self, location: str, record: Record) -> Record:
        turns = record["turns"]
        if len(turns) < 2 or not all(turns):
            raise InputError(f"{location}: a dialogue needs at least two turns, none of them empty")
        if self.database and "wishes" not in record:
            raise InputError(f"{location}: no exchanges with wishes, which data.database needs")
        for belief in record.get("wishes", []) if self.database else []:
            for name in belief:
                if name not in self.database.slot_columns:
                    allowed = ", ".join(self.database.slot_columns)
                    raise InputError(
                        f"{location}: unknown slot {name!r} in wishes; data.slot_columns has "
                        f"{allowed}"
                    )
        return record
