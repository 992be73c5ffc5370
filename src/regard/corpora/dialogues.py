"""Conversations, from files: people speak in turns, the one who is to be answered first.

    txt      a line for each turn, a blank line behind a conversation
    jsonl    {"turns": ["…", "…"]}, or with a database {"exchanges": [{"user": "…", "wishes":
             {"food": "thai"}, "reply": "…"}], "goal": {"food": "thai"}}; wishes are all that hold
             by then

Records are {"turns": [...], "text": turns with line ends between}, with "wishes" (one for each
exchange) and "goal" where there are any. All is gzipped where the name says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from regard.corpora.corpus import Record
from regard.corpora.database import Database
from regard.corpora.files import Paths, suffix_of
from regard.corpora.labelled import ByHash, Placed, by_split, shares
from regard.corpora.lines import check_file, lines, parsed_lines, shown

Format = Literal["txt", "jsonl"]
SUFFIXES: dict[str, Format] = {
    ".txt": "txt",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}
Wishes = dict[str, str]


def conversation(
    turns: Sequence[str],
    wishes: Sequence[Wishes] | None = None,
    goal: Mapping[str, str] | None = None,
) -> Record:
    plain = [" ".join(turn.split()) for turn in turns]
    record: Record = {"turns": plain, "text": "\n".join(plain)}
    if wishes is not None:
        record["wishes"] = list(wishes)
    return record if goal is None else {**record, "goal": dict(goal)}


def from_lines(path: Path | str) -> Iterator[Placed]:
    turns, first = list[str](), 0
    for number, line in enumerate([*lines(path), ""], 1):
        if line.strip():
            first = first if turns else number
            turns.append(line)
        elif turns:
            yield f"{shown(path)}:{first}", conversation(turns)
            turns = []


def from_json(path: Path | str) -> Iterator[Placed]:
    for place, found in parsed_lines(path):
        if not isinstance(found, dict) or not {"turns", "exchanges"} & set(found):
            raise ValueError(f"{place}: must be an object with turns or exchanges")
        if "turns" in found:
            turns = found["turns"]
            if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
                raise ValueError(f"{place}: turns must be a list of texts")
            yield place, conversation(turns)
        else:
            yield place, of_exchanges(found, place)


def of_exchanges(found: Mapping[str, Any], place: str) -> Record:
    turns, wishes = list[str](), list[Wishes]()
    for number, one in enumerate(found["exchanges"], 1):
        here = f"{place}: exchange {number}"
        if not isinstance(one, dict):
            raise ValueError(f"{here}: must be an object with user, wishes and reply")
        for name in ("user", "reply"):
            if not isinstance(one.get(name), str):
                raise ValueError(f"{here}: {name} must be a text")
            turns.append(one[name])
        wishes.append(texts_of(one.get("wishes", {}), f"{here}: wishes"))
    goal = found.get("goal")
    return conversation(turns, wishes, None if goal is None else texts_of(goal, f"{place}: goal"))


def texts_of(given: Any, place: str) -> Wishes:
    if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
        raise ValueError(f"{place} must be an object of texts, such as {{'food': 'thai'}}")
    return dict(given)


class Dialogues(ByHash):
    """A corpus in files of one format, and perhaps the database that its conversations are about.

    A dev or test that is not given is split off: a share `held_out` of train each, by a hash of the
    text.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: Format | None = None,  # noqa: A002 (the word in the config)
        database: str | None = None,
        asked: Sequence[str] | None = None,
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        suffix = suffix_of(self.paths["train"][0])
        if format is None and suffix not in SUFFIXES:
            known = ", ".join(SUFFIXES)
            raise ValueError(
                f"{train}: {suffix or 'no suffix'} tells no format ({known}); name one"
            )
        self.format: Format = format or SUFFIXES[suffix]
        self.shares = shares(self.paths, held_out)
        for paths in self.paths.values():
            for path in paths:
                check_file(path)
        self.database = (
            Database([], []) if database is None else Database.read(database, asked or ())
        )

    def describe(self) -> str:
        each = [f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        rows = f", {len(self.database.rows)} rows to look up" if self.database else ""
        return f"dialogues ({self.format}): {', '.join(each)}{rows}; licence as you know it"

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        for path in paths:
            for place, record in (from_lines if self.format == "txt" else from_json)(path):
                yield place, self._checked(place, record)

    def _checked(self, place: str, record: Record) -> Record:
        turns = record["turns"]
        if len(turns) < 2 or not all(turns):
            raise ValueError(f"{place}: a conversation needs two turns or more, none of them empty")
        if self.database and "wishes" not in record:
            raise ValueError(f"{place}: with a database there must be exchanges, with their wishes")
        for wish in record.get("wishes", []) if self.database else []:
            for name in wish:
                if name not in self.database.asked:
                    known = ", ".join(self.database.asked)
                    raise ValueError(f"{place}: a wish about {name!r}; data.asked has {known}")
        return record
