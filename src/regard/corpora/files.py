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

from regard.corpora.corpus import Record, check_split
from regard.corpora.lines import STDIN, check_file, lines, opened, parsed, shown

Format = Literal["tsv", "parallel", "jsonl", "parquet"]
Paths = Path | str | Sequence[Path | str]

SKIPPED = "-"  # the name of a column that is of no use
BARS = "|||"
FIELDS = ("source", "target")
SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}


def tsv(path: Path | str, columns: Sequence[str] = FIELDS) -> Iterator[Record]:
    """One record a line; `columns` names every column in order, "-" those to skip. No quoting."""
    kept = [(number, name) for number, name in enumerate(columns) if name != SKIPPED]
    width = len(columns)
    for number, line in enumerate(lines(path), 1):
        cells = line.split("\t")
        if len(cells) != width:
            raise ValueError(ragged(f"{shown(path)}:{number}", cells, columns, "single tabs"))
        yield {name: cells[place] for place, name in kept}


def ragged(place: str, cells: Sequence[str], columns: Sequence[str], marks: str) -> str:
    found = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
    return (
        f"{place}: {found}, but {len(columns)} expected ({', '.join(columns)}); "
        f"separate them by {marks}, and name one to skip '-'"
    )


def parallel(paths: Sequence[Path | str], fields: Sequence[str] = FIELDS) -> Iterator[Record]:
    """Line n of each file makes record n."""
    if len(paths) != len(fields):
        raise ValueError(f"{len(paths)} files for {len(fields)} fields ({', '.join(fields)})")
    if sum(str(path) == STDIN for path in paths) > 1:
        raise ValueError("only one of several parallel files can be standard input")
    readers = [lines(path) for path in paths]
    for number, row in enumerate(zip_longest(*readers), 1):
        if None in row:
            counts = (
                number - 1 if cell is None else number + sum(1 for _ in reader)
                for cell, reader in zip(row, readers, strict=True)
            )
            each = (f"{shown(path)} has {count}" for path, count in zip(paths, counts, strict=True))
            raise ValueError(f"{', '.join(each)} lines; parallel files need equally many")
        yield dict(zip(fields, row, strict=True))


def barred(path: Path | str) -> Iterator[Record]:
    """`source ||| target` on each line, as fast_align and awesome-align have it; or tabs.

    The first line shows which.
    """
    mark = None
    for number, line in enumerate(lines(path), 1):
        mark = mark or (BARS if BARS in line else "\t")
        cells = [cell.strip(" \t") for cell in line.split(mark)]
        if len(cells) != len(FIELDS):
            found = f"{len(cells)} part{'s' if len(cells) > 1 else ''}"
            raise ValueError(
                f"{shown(path)}:{number}: {found}, but source and target expected; "
                f"put one {'tab' if mark != BARS and number > 1 else BARS} between the two"
            )
        yield dict(zip(FIELDS, cells, strict=True))


def pairs(paths: Sequence[Path | str]) -> Iterator[Record]:
    """Pairs of texts from one file of any format, or from the two sides of parallel text."""
    if len(paths) == 1 and suffix_of(paths[0]) not in SUFFIXES:
        return barred(paths[0])
    if len(paths) > len(FIELDS):
        raise ValueError(f"pairs must be in one file or two (source, target), not {len(paths)}")
    return Files(paths).read("train")


def json_lines(
    path: Path | str,
    fields: Mapping[str, str],
    of: type = str,
    also: Mapping[str, type] | None = None,
) -> Iterator[Record]:
    """One object a line. `fields` says where each of ours is in it: "de" or "translation.de".

    Values are of the type `of`; that of a field in `also` may be of the type named there, too.
    """
    more = also or {}
    kinds = {name: (of, more[name]) if name in more else (of,) for name in fields}
    for number, line in enumerate(lines(path), 1):
        place = f"{shown(path)}:{number}"
        whole = parsed(line, place)
        record = {ours: _found(whole, theirs, place) for ours, theirs in fields.items()}
        for ours, value in record.items():
            _check_value(f"{place}: {fields[ours]!r}", value, *kinds[ours])
        if "\\u" in line:
            _check_unicode(record, place)
        yield record


def _found(whole: Any, name: str, place: str) -> Any:
    value = whole
    for part in name.split("."):
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise ValueError(f"{place}: expected an object with the field {name!r}, not a {kind}")
        if part not in value:
            there = ", ".join(map(str, value)) or "none"
            raise ValueError(f"{place}: no field {name!r}; there are: {there}")
        value = value[part]
    return value


def _check_value(place: str, value: Any, *kinds: type) -> None:
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{place} must be {wanted}, not {type(value).__name__}")


def _check_unicode(record: Record, place: str) -> None:
    """Escapes may spell half of a surrogate pair, which is no character."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{place}: an escape like \\ud800 is half of a character") from None


def parquet(path: Path | str, fields: Mapping[str, str], of: type = str) -> Iterator[Record]:
    """One record a row, a thousand rows at a time. `fields` gives the column of each of ours."""
    if find_spec("pyarrow") is None:
        raise ValueError(f"{shown(path)}: Parquet needs pyarrow: pip install pyarrow")
    arrow, reader = import_module("pyarrow"), import_module("pyarrow.parquet")
    with opened(path) as file, tempfile.TemporaryFile() as whole:
        if str(path) == STDIN or Path(path).suffix == ".gz":  # Parquet is read from its end
            copyfileobj(file, whole)
            file = whole
        try:
            table = reader.ParquetFile(file)
            there = table.schema_arrow.names
            for name in fields.values():
                if name not in there:
                    columns = ", ".join(there)
                    raise ValueError(f"{shown(path)}: no column {name!r}; there are: {columns}")
            if not table.metadata.num_rows:
                raise ValueError(f"{shown(path)}: empty, no row to read")
            number = 0
            for batch in table.iter_batches(batch_size=1000, columns=list(fields.values())):
                for row in batch.to_pylist():
                    number += 1
                    record = {ours: row[theirs] for ours, theirs in fields.items()}
                    for ours, value in record.items():
                        _check_value(f"{shown(path)}: row {number}: {fields[ours]!r}", value, of)
                    yield record
        except arrow.ArrowException as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{shown(path)}: damaged, or not Parquet ({reason})") from None


class Files:
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
        format: Format | None = None,  # noqa: A002 (the word in the config)
        columns: Sequence[str] = FIELDS,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        given = {"train": train, "dev": dev, "test": test}
        self.paths = {split: _listed(paths) for split, paths in given.items() if paths is not None}
        self.columns = tuple(columns)
        self.fields = dict(fields or {name: name for name in FIELDS})
        self.format: Format = format or guessed(self.paths["train"])
        sides = len(self.columns) if self.format == "parallel" else 1
        for split, paths in self.paths.items():
            if len(paths) != sides:
                what = f"{sides} files ({', '.join(self.columns)})" if sides > 1 else "one file"
                raise ValueError(f"{split}: {self.format} needs {what}, not {len(paths)}")
            for path in paths:
                check_file(path)

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.paths)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        paths = self.paths[split]
        readers: dict[Format, Callable[[], Iterator[Record]]] = {
            "tsv": lambda: tsv(paths[0], self.columns),
            "parallel": lambda: parallel(paths, self.columns),
            "jsonl": lambda: json_lines(paths[0], self.fields),
            "parquet": lambda: parquet(paths[0], self.fields),
        }
        return readers[self.format]()

    def place(self, split: str, number: int) -> str:
        """File and line of a record; parallel files share the line."""
        names = " and ".join(shown(path) for path in self.paths[split])
        return f"{names}:{number + 1}"

    def describe(self) -> str:
        each = (f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items())
        return f"files ({self.format}): {', '.join(each)}; licence as you know it"


def guessed(paths: Sequence[Path | str]) -> Format:
    """The format, by the number of the files or the end of their name."""
    if len(paths) > 1:
        return "parallel"
    if str(paths[0]) == STDIN:
        return "tsv"
    suffix = suffix_of(paths[0])
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{paths[0]}: {suffix or 'no suffix'} tells no format ({known}); name one")
    return SUFFIXES[suffix]


def suffix_of(path: Path | str) -> str:
    """The end of the name, where `.gz` does not count."""
    return Path(str(path).removesuffix(".gz")).suffix


def _listed(paths: Paths) -> tuple[Path | str, ...]:
    return (paths,) if isinstance(paths, Path | str) else tuple(paths)
