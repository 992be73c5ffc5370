"""A small table of facts to talk about: rows from CSV, JSON or SQLite, found by what is wished.

blanked    "Pizza Hut is in the south" -> "[name] is in the [area]"
filled     the other way, from a row, or from the wishes where no row is
"""

import csv
import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from regard.config.whole import write_whole
from regard.corpora.files import suffix_of
from regard.corpora.lines import check_file, whole

Row = dict[str, str]
ANY = "any"  # a wish that is none
BLANK = re.compile(r"\[(\w+)\]")
SHORTEST = 3  # characters of a value that is looked for in text


class Database:
    """`asked`: the columns that people have wishes about; the others are told of a row.

    Without rows there is nothing to look up: conversations are about anything.
    """

    def __init__(self, rows: Sequence[Mapping[str, str]], asked: Sequence[str]):
        if asked and not rows:
            raise ValueError("there is no row in it")
        self.rows: list[Row] = [dict(row) for row in rows]
        self.columns = list(dict.fromkeys(name for row in self.rows for name in row))
        for name in asked:
            if name not in self.columns:
                raise ValueError(
                    f"there is no column {name!r}; there are {', '.join(self.columns)}"
                )
        self.asked = list(asked)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def find(self, wishes: Mapping[str, str]) -> list[Row]:
        """Rows that are as wished, in their order; what is asked in vain is not passed over."""
        wanted = {n: v.casefold() for n, v in wishes.items() if n in self.asked and v != ANY}
        return [
            row
            for row in self.rows
            if all(row.get(name, "").casefold() == value for name, value in wanted.items())
        ]

    def blanked(self, text: str) -> str:
        """Values of the table, the longest first, by the names of their columns."""

        def name(found: re.Match[str]) -> str:
            return f"[{self.named[found[0].casefold()]}]"

        return self.pattern.sub(name, text)

    def filled(self, text: str, row: Mapping[str, str] | None, wishes: Mapping[str, str]) -> str:
        """What is known in the place of blanks; one of which nothing is known stays."""

        def value(found: re.Match[str]) -> str:
            name = found[1]
            wish = wishes.get(name, ANY)
            told = wish if row is None else row.get(name, wish)
            return found[0] if told in (ANY, "") else told

        return BLANK.sub(value, text)

    @cached_property
    def named(self) -> dict[str, str]:
        """The column of each value; where it stands in two, it is of the first that is told."""
        order = [n for n in self.columns if n not in self.asked] + self.asked
        found: dict[str, str] = {}
        for name in order:
            for row in self.rows:
                if len(value := row.get(name, "")) >= SHORTEST:
                    found.setdefault(value.casefold(), name)
        return found

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        values = sorted(self.named, key=lambda value: (-len(value), value))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, values))})(?!\w)", re.IGNORECASE)

    def save(self, path: Path) -> None:
        kept = {"asked": self.asked, "rows": self.rows}
        write_whole(path, (json.dumps(kept, ensure_ascii=False, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> "Database":
        kept = json.loads(path.read_text("utf-8"))
        return cls(kept["rows"], kept["asked"])

    @classmethod
    def read(cls, path: Path | str, asked: Sequence[str]) -> "Database":
        """From a file: .csv, .json (a list of objects) or .sqlite (its one table)."""
        check_file(path)
        match suffix_of(path):
            case ".csv":
                rows = csv_rows(path)
            case ".json":
                rows = json_rows(path)
            case ".sqlite" | ".sqlite3" | ".db":
                rows = sqlite_rows(Path(path))
            case other:
                raise ValueError(f"{path}: a database is .csv, .json or .sqlite, not {other!r}")
        try:
            return cls([{n: told(v) for n, v in row.items()} for row in rows], asked)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def told(value: object) -> str:
    """A value as text; what is missing is empty."""
    return "" if value is None else " ".join(str(value).split())


def csv_rows(path: Path | str) -> list[dict[str, object]]:
    """The first line names the columns."""
    found: list[dict[str, object]] = []
    reader = csv.reader(whole(path).splitlines())
    header = next(reader, [])
    for cells in reader:
        if cells and len(cells) != len(header):
            place = f"{path}:{reader.line_num}"
            raise ValueError(f"{place}: {len(cells)} cells under {len(header)} columns")
        if cells:
            found.append(dict(zip(header, cells, strict=True)))
    return found


def json_rows(path: Path | str) -> list[dict[str, object]]:
    try:
        found = json.loads(whole(path))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise ValueError(f"{path}: must be a list of objects, one for each row")
    return found


def sqlite_rows(path: Path) -> Iterable[dict[str, object]]:
    """Of its one table; the file is only read."""
    try:
        with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as base:
            base.row_factory = sqlite3.Row
            tables = [row[0] for row in base.execute(TABLES)]
            if len(tables) != 1:
                raise ValueError(f"{path}: must have one table, not {len(tables)}")
            quoted = tables[0].replace('"', '""')
            rows = base.execute(f'SELECT * FROM "{quoted}"').fetchall()  # noqa: S608 - a name it has
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path}: not a database of SQLite ({error})") from None
    return [dict(row) for row in rows]


TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
