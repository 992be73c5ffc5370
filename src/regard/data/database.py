"""The table behind a task-oriented dialogue: rows from CSV, JSON or SQLite, found by slot values.

delexicalize   "Pizza Hut is in the south" -> "[name] is in the [area]"
lexicalize     the reverse, with the values of a row, or of the belief if there is no row
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeGuard, TypeVar

from regard.data.formats.lines import check_file, parse_csv, read_text
from regard.data.formats.text_pairs import path_suffix
from regard.errors import InputError
from regard.files import write_atomic
from regard.parsing import parse_json, read_json_object

T = TypeVar("T")
Row = dict[str, str]
ANY_VALUE = "any"  # the slot is mentioned, but not constrained
PLACEHOLDER = re.compile(r"\[(\w+)\]")
MIN_VALUE_CHARACTERS = 3  # shorter values are not searched for in text


class Database:
    """Rows of text, searched by the columns that users constrain (`slot_columns`).

    The other columns describe a row to the user. A database without rows stands for open-domain
    dialogues.
    """

    def __init__(self, rows: Sequence[Mapping[str, str]], slot_columns: Sequence[str]):
        if slot_columns and not rows:
            raise InputError("no rows; add at least one")
        self.rows: list[Row] = [dict(row) for row in rows]
        self.columns = list(dict.fromkeys(name for row in self.rows for name in row))
        for name in slot_columns:
            if name not in self.columns:
                raise InputError(f"no column {name!r}; choose from {', '.join(self.columns)}")
        self.slot_columns = list(slot_columns)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def find_rows(self, belief: Mapping[str, str]) -> list[Row]:
        """Return the rows that match every slot value, in order; unknown values match no row."""
        constraints = {
            n: v.casefold() for n, v in belief.items() if n in self.slot_columns and v != ANY_VALUE
        }
        return [
            row
            for row in self.rows
            if all(row.get(name, "").casefold() == value for name, value in constraints.items())
        ]

    def delexicalize(self, text: str) -> str:
        """Replace values of the table by `[column]`, longer values first."""

        def column_placeholder(match: re.Match[str]) -> str:
            return f"[{self.column_by_value[match[0].casefold()]}]"

        return self.value_pattern.sub(column_placeholder, text)

    def lexicalize(
        self, text: str, row: Mapping[str, str] | None, belief: Mapping[str, str]
    ) -> str:
        """Fill placeholders from the row, then from the belief; keep those without a value."""

        def placeholder_value(match: re.Match[str]) -> str:
            name = match[1]
            slot_value = belief.get(name, ANY_VALUE)
            value = slot_value if row is None else row.get(name, slot_value)
            return match[0] if value in (ANY_VALUE, "") else value

        return PLACEHOLDER.sub(placeholder_value, text)

    @cached_property
    def column_by_value(self) -> dict[str, str]:
        """Map each value to its column; columns outside `slot_columns` come first."""
        order = [n for n in self.columns if n not in self.slot_columns] + self.slot_columns
        columns: dict[str, str] = {}
        for name in order:
            for row in self.rows:
                if len(value := row.get(name, "")) >= MIN_VALUE_CHARACTERS:
                    columns.setdefault(value.casefold(), name)
        return columns

    @cached_property
    def value_pattern(self) -> re.Pattern[str]:
        values = sorted(self.column_by_value, key=lambda value: (-len(value), value))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, values))})(?!\w)", re.IGNORECASE)

    def save(self, path: Path) -> None:
        state = {"asked": self.slot_columns, "rows": self.rows}
        write_atomic(path, (json.dumps(state, ensure_ascii=False, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> "Database":
        state = read_json_object(path)
        rows, slot_columns = state.get("rows"), state.get("asked")
        if not is_list_of(rows, dict) or not is_list_of(slot_columns, str):
            raise InputError(f"{path}: not the database of a run; it has no rows and columns")
        if not all(is_list_of(list(row.values()), str) for row in rows):
            raise InputError(f"{path}: rows must contain text only")
        try:
            return cls(rows, slot_columns)
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def read(cls, path: Path | str, slot_columns: Sequence[str]) -> "Database":
        """Read a .csv file, a .json list of objects, or the only table of a .sqlite file."""
        check_file(path)
        match path_suffix(path):
            case ".csv":
                rows = csv_rows(path)
            case ".json":
                rows = json_rows(path)
            case ".sqlite" | ".sqlite3" | ".db":
                rows = sqlite_rows(Path(path))
            case suffix:
                raise InputError(
                    f"{path}: unknown suffix {suffix!r}; a database is .csv, .json or .sqlite"
                )
        try:
            return cls([{n: cell_text(v) for n, v in row.items()} for row in rows], slot_columns)
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None


def is_list_of(values: object, kind: type[T]) -> TypeGuard[list[T]]:
    """Return whether a value is a list whose items all have this type."""
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def cell_text(value: object) -> str:
    """Return the value as text with single spaces, and None as an empty text."""
    return "" if value is None else " ".join(str(value).split())


def csv_rows(path: Path | str) -> list[dict[str, object]]:
    """Read rows of CSV; the first line names the columns."""
    rows: list[dict[str, object]] = []
    numbered_rows = parse_csv(path, read_text(path).splitlines(keepends=True))
    _, header = next(numbered_rows, (0, list[str]()))
    for number, cells in numbered_rows:
        if cells and len(cells) != len(header):
            raise InputError(
                f"{path}:{number}: {len(cells)} cells, but {len(header)} columns; "
                "give each row one cell a column"
            )
        if cells:
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def json_rows(path: Path | str) -> list[dict[str, object]]:
    rows = parse_json(read_text(path), str(path))
    if not is_list_of(rows, dict):
        raise InputError(f"{path}: must be a list of objects, one for each row")
    return rows


def sqlite_rows(path: Path) -> Iterable[dict[str, object]]:
    """Read the only table of the file, which is opened read-only."""
    try:
        with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as connection:
            connection.row_factory = sqlite3.Row
            tables = [row[0] for row in connection.execute(TABLES_QUERY)]
            if len(tables) != 1:
                raise InputError(f"{path}: must have one table, not {len(tables)}")
            table_name = tables[0].replace('"', '""')
            rows = connection.execute(f'SELECT * FROM "{table_name}"').fetchall()  # noqa: S608 - quoted
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise InputError(f"{path}: not an SQLite database ({error})") from None
    return [dict(row) for row in rows]


TABLES_QUERY = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
