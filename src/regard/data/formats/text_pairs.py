"""Pairs of texts from files: TSV, CSV, parallel text, JSON lines, Parquet.

Files ending in .gz are decompressed. Readers are lazy and keep one line in memory.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice, zip_longest
from pathlib import Path
from shutil import copyfileobj
from typing import Literal, TypeVar

from regard.data.corpus import Record, check_split
from regard.data.formats.held_out import hash_split, held_out_shares
from regard.data.formats.lines import (
    STDIN,
    check_file,
    display_name,
    open_binary,
    parse_json_lines,
    read_lines,
)
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.tables import read_rows
from regard.errors import InputError
from regard.parsing import one_line

TextPairFormat = Literal["tsv", "csv", "parallel", "jsonl", "parquet"]
FormatT = TypeVar("FormatT", bound=str)
Paths = Path | str | Sequence[Path | str]

BAR_SEPARATOR = "|||"
PAIR_FIELDS = ("source", "target")
FORMAT_BY_SUFFIX: dict[str, TextPairFormat] = {
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    ".csv": "csv",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}


def read_tsv(
    path: Path | str, columns: Sequence[str] = PAIR_FIELDS, skipped: SkippedRows | None = None
) -> Iterator[Record]:
    """Yield one record a line, without quoting; `columns` names all columns, "-" skips one."""
    return (record for _, record in read_rows(path, "tsv", columns, skipped=skipped))


def read_parallel(
    paths: Sequence[Path | str], fields: Sequence[str] = PAIR_FIELDS
) -> Iterator[Record]:
    """Yield record n from line n of each file."""
    if len(paths) != len(fields):
        raise InputError(f"{len(paths)} files for {len(fields)} fields ({', '.join(fields)})")
    if sum(str(path) == STDIN for path in paths) > 1:
        raise InputError("only one of several parallel files can be standard input")
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
            raise InputError(f"{', '.join(line_counts)} lines; parallel files need the same number")
        yield dict(zip(fields, row, strict=True))


def read_bar_separated(path: Path | str) -> Iterator[Record]:
    """Read lines of `source ||| target`, the format of fast_align and awesome-align, or of tabs.

    The first line decides which.
    """
    separator = None
    for number, line in enumerate(read_lines(path), 1):
        separator = separator or (BAR_SEPARATOR if BAR_SEPARATOR in line else "\t")
        cells = [cell.strip(" \t") for cell in line.split(separator)]
        if len(cells) != len(PAIR_FIELDS):
            count = f"{len(cells)} part{'s' if len(cells) > 1 else ''}"
            between = "tab" if separator != BAR_SEPARATOR and number > 1 else BAR_SEPARATOR
            raise InputError(
                f"{display_name(path)}:{number}: {count}, but source and target expected; "
                f"separate them by one {between}"
            )
        yield dict(zip(PAIR_FIELDS, cells, strict=True))


def read_pairs(paths: Sequence[Path | str]) -> Iterator[Record]:
    """Read pairs of texts from one file of any format, or from two parallel files."""
    if len(paths) == 1 and path_suffix(paths[0]) not in FORMAT_BY_SUFFIX:
        return read_bar_separated(paths[0])
    if len(paths) > len(PAIR_FIELDS):
        raise InputError(f"pairs must be in one file, or two (source, target), not {len(paths)}")
    return TextPairFiles(paths).read("train")


def read_json_lines(
    path: Path | str,
    fields: Mapping[str, str],
    value_type: type = str,
    extra_types: Mapping[str, type] | None = None,
    skipped: SkippedRows | None = None,
) -> Iterator[Record]:
    """Yield one record a line. `fields` maps our fields to theirs: "de" or "translation.de".

    Values must be of `value_type`; those of a field in `extra_types` may also have that type.
    """
    located = read_located_json_lines(path, fields, value_type, extra_types, skipped)
    return (record for _, record in located)


def read_located_json_lines(
    path: Path | str,
    fields: Mapping[str, str],
    value_type: type = str,
    extra_types: Mapping[str, type] | None = None,
    skipped: SkippedRows | None = None,
) -> Iterator[tuple[str, Record]]:
    """Yield one record a line, as `read_json_lines` does, each with its location."""
    extra, skipped = extra_types or {}, skipped or SkippedRows()
    kinds = {name: (value_type, extra[name]) if name in extra else (value_type,) for name in fields}
    for location, data in parse_json_lines(path, skipped=skipped):
        with skipped.row(location):
            record = {ours: _field_value(data, theirs, location) for ours, theirs in fields.items()}
            for ours, value in record.items():
                _check_value(f"{location}: {fields[ours]!r}", value, *kinds[ours])
            yield location, record


def _field_value(data: object, name: str, location: str) -> object:
    value = data
    for part in name.split("."):
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise InputError(
                f"{location}: expected an object with the field {name!r}, not a {kind}"
            )
        if part not in value:
            available = ", ".join(map(str, value)) or "none"
            raise InputError(f"{location}: no field {name!r}; the fields are: {available}")
        value = value[part]
    return value


def _check_value(location: str, value: object, *kinds: type) -> None:
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{location} must be {expected}, not {type(value).__name__}")


def read_parquet(
    path: Path | str, fields: Mapping[str, str], value_type: type = str
) -> Iterator[Record]:
    """Yield one record a row, reading 1000 rows at a time; `fields` maps our fields to columns."""
    if find_spec("pyarrow") is None:
        raise InputError(f"{display_name(path)}: Parquet needs pyarrow: pip install pyarrow")
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
                    raise InputError(
                        f"{display_name(path)}: no column {name!r}; the columns are: {columns}"
                    )
            if not table.metadata.num_rows:
                raise InputError(f"{display_name(path)}: no rows (empty)")
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
        except (arrow.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
            reason = one_line(error)
            raise InputError(f"{display_name(path)}: damaged, or not Parquet ({reason})") from None


class TextPairFiles:
    """A corpus in files of one format: one file a split, or one for each side of parallel text.

    `columns` names the columns of a TSV, or the sides of parallel files, in order. `fields` maps
    our fields to those of JSON lines and Parquet. The default format is inferred from the suffix.
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
        held_out: float = 0.0,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        given_paths = {"train": train, "dev": dev, "test": test}
        self.paths = {
            split: _path_tuple(paths) for split, paths in given_paths.items() if paths is not None
        }
        self.columns = tuple(columns)
        self.fields = dict(fields or {name: name for name in PAIR_FIELDS})
        self.format: TextPairFormat = format or guess_format(self.paths["train"])
        self.shares = held_out_shares(self.paths, held_out)
        sides = len(self.columns) if self.format == "parallel" else 1
        for split, paths in self.paths.items():
            if len(paths) != sides:
                expected = f"{sides} files ({', '.join(self.columns)})" if sides > 1 else "one file"
                raise InputError(f"{split}: {self.format} needs {expected}, not {len(paths)}")
            for path in paths:
                check_file(path)

    @property
    def splits(self) -> tuple[str, ...]:
        return (*self.paths, *self.shares)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        if split in self.paths and not (split == "train" and self.shares):
            return self._read_files(self.paths[split])
        return self._select_split(split)

    def _select_split(self, split: str) -> Iterator[Record]:
        """Yield the pairs of train whose source falls to a split by its hash."""
        is_empty = True
        for record in self._read_files(self.paths["train"]):
            if hash_split(record["source"], self.shares) == split:
                is_empty = False
                yield record
        if is_empty:
            path = display_name(self.paths["train"][0])
            raise InputError(f"{path}: too few pairs to hold out {split}; give files for {split}")

    def _read_files(self, paths: tuple[Path | str, ...]) -> Iterator[Record]:
        readers: dict[TextPairFormat, Callable[[], Iterator[Record]]] = {
            "tsv": lambda: (record for _, record in self._read_table(paths[0], "tsv")),
            "csv": lambda: (record for _, record in self._read_table(paths[0], "csv")),
            "parallel": lambda: read_parallel(paths, self.columns),
            "jsonl": lambda: read_json_lines(paths[0], self.fields, skipped=self.skipped),
            "parquet": lambda: read_parquet(paths[0], self.fields),
        }
        return readers[self.format]()

    def _read_table(
        self,
        path: Path | str,
        format: Literal["tsv", "csv"],  # noqa: A002 (the word in the config)
    ) -> Iterator[tuple[int, Record]]:
        return read_rows(path, format, self.columns, skipped=self.skipped)

    def location(self, split: str, index: int) -> str:
        """Return file and line of a record; parallel files share the line."""
        if self.format in ("tsv", "csv") and str(self.paths[split][0]) != STDIN:
            rows = self._read_table(self.paths[split][0], self.format)
            number, _ = next(islice(rows, index, None), (index + 1, {}))
            return f"{display_name(self.paths[split][0])}:{number}"
        if self.format == "jsonl" and str(self.paths[split][0]) != STDIN:
            located = read_located_json_lines(
                self.paths[split][0], self.fields, skipped=self.skipped
            )
            place, _ = next(islice(located, index, None), (f"{split}, record {index + 1}", {}))
            return place
        names = " and ".join(display_name(path) for path in self.paths[split])
        return f"{names}:{index + 1}"

    def describe(self) -> str:
        each = [
            f"{split} {' + '.join(map(display_name, paths))}" for split, paths in self.paths.items()
        ]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        each += [self.skipped.describe()] if self.skipped.messages else []
        return f"files ({self.format}): {', '.join(each)}; license not stated"


def guess_format(paths: Sequence[Path | str]) -> TextPairFormat:
    """Infer the format: several files are parallel, standard input is TSV, a file has a suffix."""
    if len(paths) > 1:
        return "parallel"
    if str(paths[0]) == STDIN:
        return "tsv"
    return format_from_suffix(paths[0], FORMAT_BY_SUFFIX)


def format_from_suffix(path: Path | str, formats: Mapping[str, FormatT]) -> FormatT:
    """Return the format of a file by its suffix."""
    suffix = path_suffix(path)
    if suffix not in formats:
        problem = f"cannot infer the format from {suffix or 'no suffix'} ({', '.join(formats)})"
        raise InputError(f"{path}: {problem}; set data.format")
    return formats[suffix]


def path_suffix(path: Path | str) -> str:
    """Return the suffix of a file name, without `.gz`."""
    return Path(str(path).removesuffix(".gz")).suffix


def _path_tuple(paths: Paths) -> tuple[Path | str, ...]:
    return (paths,) if isinstance(paths, Path | str) else tuple(paths)
