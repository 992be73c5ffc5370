"""Records from files: TSV, parallel text, JSON lines, Parquet; gzipped where the name says so.

Nothing is read before it is asked for, and a line is forgotten when the next one comes.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from shutil import copyfileobj
from typing import Any, Literal

from regard.data.corpus import Record, check_split
from regard.data.formats.lines import (
    STDIN,
    check_file,
    display_name,
    open_binary,
    parse_json_line,
    read_lines,
)

TextPairFormat = Literal["tsv", "parallel", "jsonl", "parquet"]
Paths = Path | str | Sequence[Path | str]

SKIPPED_COLUMN = "-"  # the name of a column that is of no use
BAR_SEPARATOR = "|||"
PAIR_FIELDS = ("source", "target")
FORMAT_BY_SUFFIX: dict[str, TextPairFormat] = {
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}


def read_tsv(path: Path | str, columns: Sequence[str] = PAIR_FIELDS) -> Iterator[Record]:
    """One record a line; `columns` names every column in order, "-" those to skip. No quoting."""
    kept_columns = [(number, name) for number, name in enumerate(columns) if name != SKIPPED_COLUMN]
    width = len(columns)
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if len(cells) != width:
            raise ValueError(
                column_count_message(
                    f"{display_name(path)}:{number}", cells, columns, "single tabs"
                )
            )
        yield {name: cells[column] for column, name in kept_columns}


def column_count_message(
    location: str, cells: Sequence[str], columns: Sequence[str], separators: str
) -> str:
    count = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
    return (
        f"{location}: {count}, but {len(columns)} expected ({', '.join(columns)}); "
        f"separate them by {separators}, and name one to skip '-'"
    )


def read_parallel(
    paths: Sequence[Path | str], fields: Sequence[str] = PAIR_FIELDS
) -> Iterator[Record]:
    """Line n of each file makes record n."""
    if len(paths) != len(fields):
        raise ValueError(f"{len(paths)} files for {len(fields)} fields ({', '.join(fields)})")
    if sum(str(path) == STDIN for path in paths) > 1:
        raise ValueError("only one of several parallel files can be standard input")
    readers = [read_lines(path) for path in paths]
    for number, row in enumerate(zip_longest(*readers), 1):
        if None in row:
            counts = (
                number - 1 if cell is None else number + sum(1 for _ in reader)
                for cell, reader in zip(row, readers, strict=True)
            )
            line_counts = (
                f"{display_name(path)} has {count}"
                for path, count in zip(paths, counts, strict=True)
            )
            raise ValueError(f"{', '.join(line_counts)} lines; parallel files need equally many")
        yield dict(zip(fields, row, strict=True))


def read_bar_separated(path: Path | str) -> Iterator[Record]:
    """`source ||| target` on each line, as fast_align and awesome-align have it; or tabs.

    The first line shows which.
    """
    separator = None
    for number, line in enumerate(read_lines(path), 1):
        separator = separator or (BAR_SEPARATOR if BAR_SEPARATOR in line else "\t")
        cells = [cell.strip(" \t") for cell in line.split(separator)]
        if len(cells) != len(PAIR_FIELDS):
            count = f"{len(cells)} part{'s' if len(cells) > 1 else ''}"
            between = "tab" if separator != BAR_SEPARATOR and number > 1 else BAR_SEPARATOR
            raise ValueError(
                f"{display_name(path)}:{number}: {count}, but source and target expected; "
                f"put one {between} between the two"
            )
        yield dict(zip(PAIR_FIELDS, cells, strict=True))


def read_pairs(paths: Sequence[Path | str]) -> Iterator[Record]:
    """Pairs of texts from one file of any format, or from the two sides of parallel text."""
    if len(paths) == 1 and path_suffix(paths[0]) not in FORMAT_BY_SUFFIX:
        return read_bar_separated(paths[0])
    if len(paths) > len(PAIR_FIELDS):
        raise ValueError(f"pairs must be in one file or two (source, target), not {len(paths)}")
    return TextPairFiles(paths).read("train")


def read_json_lines(
    path: Path | str,
    fields: Mapping[str, str],
    value_type: type = str,
    extra_types: Mapping[str, type] | None = None,
) -> Iterator[Record]:
    """One object a line. `fields` says where each of ours is in it: "de" or "translation.de".

    Values are of the type `of`; that of a field in `also` may be of the type named there, too.
    """
    extra = extra_types or {}
    kinds = {name: (value_type, extra[name]) if name in extra else (value_type,) for name in fields}
    for number, line in enumerate(read_lines(path), 1):
        location = f"{display_name(path)}:{number}"
        data = parse_json_line(line, location)
        record = {ours: _field_value(data, theirs, location) for ours, theirs in fields.items()}
        for ours, value in record.items():
            _check_value(f"{location}: {fields[ours]!r}", value, *kinds[ours])
        if "\\u" in line:
            _check_unicode(record, location)
        yield record


def _field_value(data: Any, name: str, location: str) -> Any:
    value = data
    for part in name.split("."):
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise ValueError(
                f"{location}: expected an object with the field {name!r}, not a {kind}"
            )
        if part not in value:
            available = ", ".join(map(str, value)) or "none"
            raise ValueError(f"{location}: no field {name!r}; there are: {available}")
        value = value[part]
    return value


def _check_value(location: str, value: Any, *kinds: type) -> None:
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{location} must be {expected}, not {type(value).__name__}")


def _check_unicode(record: Record, location: str) -> None:
    """Escapes may spell half of a surrogate pair, which is no character."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{location}: an escape like \\ud800 is half of a character") from None


def read_parquet(
    path: Path | str, fields: Mapping[str, str], value_type: type = str
) -> Iterator[Record]:
    """One record a row, a thousand rows at a time. `fields` gives the column of each of ours."""
    if find_spec("pyarrow") is None:
        raise ValueError(f"{display_name(path)}: Parquet needs pyarrow: pip install pyarrow")
    arrow, reader = import_module("pyarrow"), import_module("pyarrow.parquet")
    with open_binary(path) as file, tempfile.TemporaryFile() as copy:
        if str(path) == STDIN or Path(path).suffix == ".gz":  # Parquet is read from its end
            copyfileobj(file, copy)
            file = copy
        try:
            table = reader.ParquetFile(file)
            available = table.schema_arrow.names
            for name in fields.values():
                if name not in available:
                    columns = ", ".join(available)
                    raise ValueError(
                        f"{display_name(path)}: no column {name!r}; there are: {columns}"
                    )
            if not table.metadata.num_rows:
                raise ValueError(f"{display_name(path)}: empty, no row to read")
            number = 0
            for batch in table.iter_batches(batch_size=1000, columns=list(fields.values())):
                for row in batch.to_pylist():
                    number += 1
                    record = {ours: row[theirs] for ours, theirs in fields.items()}
                    for ours, value in record.items():
                        _check_value(
                            f"{display_name(path)}: row {number}: {fields[ours]!r}",
                            value,
                            value_type,
                        )
                    yield record
        except arrow.ArrowException as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{display_name(path)}: damaged, or not Parquet ({reason})") from None


class TextPairFiles:
    """A corpus in files of one format: a path for each split, or one for each side of it.

    `columns` names the columns of a TSV, or the sides of parallel files, in order; `fields` says
    where our fields are in JSON lines and Parquet. Without a format, the names of the files tell.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: TextPairFormat | None = None,  # noqa: A002 (the word in the config)
        columns: Sequence[str] = PAIR_FIELDS,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        given_paths = {"train": train, "dev": dev, "test": test}
        self.paths = {
            split: _path_tuple(paths) for split, paths in given_paths.items() if paths is not None
        }
        self.columns = tuple(columns)
        self.fields = dict(fields or {name: name for name in PAIR_FIELDS})
        self.format: TextPairFormat = format or guess_format(self.paths["train"])
        sides = len(self.columns) if self.format == "parallel" else 1
        for split, paths in self.paths.items():
            if len(paths) != sides:
                expected = f"{sides} files ({', '.join(self.columns)})" if sides > 1 else "one file"
                raise ValueError(f"{split}: {self.format} needs {expected}, not {len(paths)}")
            for path in paths:
                check_file(path)

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.paths)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        paths = self.paths[split]
        readers: dict[TextPairFormat, Callable[[], Iterator[Record]]] = {
            "tsv": lambda: read_tsv(paths[0], self.columns),
            "parallel": lambda: read_parallel(paths, self.columns),
            "jsonl": lambda: read_json_lines(paths[0], self.fields),
            "parquet": lambda: read_parquet(paths[0], self.fields),
        }
        return readers[self.format]()

    def location(self, split: str, index: int) -> str:
        """File and line of a record; parallel files share the line."""
        names = " and ".join(display_name(path) for path in self.paths[split])
        return f"{names}:{index + 1}"

    def describe(self) -> str:
        each = (
            f"{split} {' + '.join(map(display_name, paths))}" for split, paths in self.paths.items()
        )
        return f"files ({self.format}): {', '.join(each)}; license not stated"


def guess_format(paths: Sequence[Path | str]) -> TextPairFormat:
    """The format, by the number of the files or the end of their name."""
    if len(paths) > 1:
        return "parallel"
    if str(paths[0]) == STDIN:
        return "tsv"
    suffix = path_suffix(paths[0])
    if suffix not in FORMAT_BY_SUFFIX:
        supported = ", ".join(FORMAT_BY_SUFFIX)
        raise ValueError(
            f"{paths[0]}: {suffix or 'no suffix'} tells no format ({supported}); name one"
        )
    return FORMAT_BY_SUFFIX[suffix]


def path_suffix(path: Path | str) -> str:
    """The end of the name, where `.gz` does not count."""
    return Path(str(path).removesuffix(".gz")).suffix


def _path_tuple(paths: Paths) -> tuple[Path | str, ...]:
    return (paths,) if isinstance(paths, Path | str) else tuple(paths)
