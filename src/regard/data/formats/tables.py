"""Rows of TSV and CSV files: headers, blank lines, and rows that cannot be read."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

from regard.data.corpus import Record
from regard.data.formats.lines import display_name, parse_csv, read_lines
from regard.data.formats.skipped_rows import SkippedRows
from regard.errors import InputError

TableFormat = Literal["tsv", "csv"]

SKIPPED_COLUMN = "-"  # the name of a column to ignore
SEPARATORS: dict[str, str] = {"tsv": "single tabs", "csv": "commas"}
SKIP_HINT = "remove it, or skip such rows with --skip-bad (data.skip_bad)"


def read_rows(
    path: Path | str,
    format: TableFormat,  # noqa: A002 (the word in the config)
    columns: Sequence[str],
    fields: Mapping[str, str] | None = None,
    skipped: SkippedRows | None = None,
) -> Iterator[tuple[int, Record]]:
    """Yield the records of a table, each with the number of its line.

    `columns` names every column in order; "-" skips one. With `fields`, the first row is a header,
    and they map our fields to its names. Without them, a first row that has all names of `columns`
    is a header too. Blank lines at the end are ignored. TSV has no quoting.
    """
    skipped = skipped or SkippedRows()
    name, rows = display_name(path), numbered_rows(path, format)
    first = next(rows, None)
    if first is None:
        return
    header = header_columns(first[1], columns, fields, f"{name}:{first[0]}")
    if header is not None:
        columns, first = header, None
    kept_columns = [(index, ours) for index, ours in enumerate(columns) if ours != SKIPPED_COLUMN]
    blank_lines: list[int] = []
    for number, cells in rows if first is None else chain([first], rows):
        if not any(cells) and len(cells) < 2:
            blank_lines.append(number)
            continue
        for blank_line in blank_lines:
            skipped.add(f"{name}:{blank_line}", f"the line is blank; {SKIP_HINT}")
        blank_lines = []
        if len(cells) != len(columns):
            problem = column_count_problem(cells, columns, SEPARATORS[format])
            skipped.add(f"{name}:{number}", problem)
            continue
        yield number, {ours: cells[index] for index, ours in kept_columns}


def numbered_rows(path: Path | str, format: TableFormat) -> Iterator[tuple[int, list[str]]]:  # noqa: A002
    """Yield the cells of each row, with the number of its first line."""
    if format == "csv":
        yield from parse_csv(path, (f"{line}\n" for line in read_lines(path)))
        return
    for number, line in enumerate(read_lines(path), 1):
        yield number, line.split("\t")


def header_columns(
    cells: Sequence[str],
    columns: Sequence[str],
    fields: Mapping[str, str] | None,
    location: str,
) -> list[str] | None:
    """Return our name of each column of a header, or None if the row is no header."""
    if fields is not None:
        for theirs in fields.values():
            if list(cells).count(theirs) != 1:
                raise InputError(
                    f"{location}: the header must have {theirs!r} once; it has {', '.join(cells)}"
                )
        names = {theirs: ours for ours, theirs in fields.items()}
        return [names.get(theirs, SKIPPED_COLUMN) for theirs in cells]
    titles = [cell.strip().lower() for cell in cells]
    known_names = [name for name in columns if name != SKIPPED_COLUMN]
    if all(titles.count(name) == 1 for name in known_names):
        return [title if title in known_names else SKIPPED_COLUMN for title in titles]
    return None


def column_count_problem(cells: Sequence[str], columns: Sequence[str], separators: str) -> str:
    count = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
    return (
        f"{count}, but {len(columns)} expected ({', '.join(columns)}); "
        f"separate them by {separators}, and name columns to skip '-'"
    )
