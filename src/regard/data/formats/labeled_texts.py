"""Texts with a label from files: TSV, CSV, JSON lines, parallel files, a folder for each label.

Records are {"text": …, "label": …}, or {"text": …, "pair": …, "label": …} for two texts with one
label. Everything is gzipped where the name says so, and read one record at a time.
"""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from regard.data.corpus import SPLITS, Record, check_split
from regard.data.formats.lines import STDIN, check_file, display_name, read_lines, read_text
from regard.data.formats.text_pairs import (
    SKIPPED_COLUMN,
    Paths,
    column_count_message,
    path_suffix,
    read_json_lines,
    read_parallel,
)

LabeledTextFormat = Literal["tsv", "csv", "jsonl", "parallel", "folder"]
LocatedRecord = tuple[str, Record]  # where a record stands, and the record

FIELDS = ("text", "label")
SEPARATORS: dict[str, str] = {"tsv": "single tabs", "csv": "commas"}
FORMAT_BY_SUFFIX: dict[str, LabeledTextFormat] = {
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    ".csv": "csv",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}


def read_table(
    path: Path | str,
    format: Literal["tsv", "csv"],  # noqa: A002 (the word in the config)
    columns: Sequence[str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> Iterator[LocatedRecord]:
    """One record a row. `columns` names every column in order, "-" those to skip.

    With `fields` instead, the first row is a header, and they give its name for each of ours. In a
    TSV nothing is quoted; a cell of a CSV in double quotes may hold commas and line ends.
    """
    rows = numbered_csv_rows(path) if format == "csv" else numbered_tsv_rows(path)
    if fields is None:
        columns = FIELDS if columns is None else columns
    else:
        number, header = next(rows)
        for theirs in fields.values():
            if header.count(theirs) != 1:
                raise ValueError(
                    f"{display_name(path)}:{number}: the header must name {theirs!r} once; "
                    f"it has: {', '.join(header)}"
                )
        names = {theirs: ours for ours, theirs in fields.items()}
        columns = [names.get(theirs, SKIPPED_COLUMN) for theirs in header]
    kept_columns = [
        (location, name) for location, name in enumerate(columns) if name != SKIPPED_COLUMN
    ]
    for number, cells in rows:
        location = f"{display_name(path)}:{number}"
        if len(cells) != len(columns):
            raise ValueError(column_count_message(location, cells, columns, SEPARATORS[format]))
        yield location, {name: cells[column] for column, name in kept_columns}


def numbered_tsv_rows(path: Path | str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(read_lines(path), 1):
        yield number, line.split("\t")


def numbered_csv_rows(path: Path | str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV with the line that each begins in."""
    reader = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"{display_name(path)}:{number}: not CSV ({error}); put a cell with a "
                "quote in it in "
                "quotes, and double the quote"
            ) from None
        if row is None:
            return
        yield number, row


def read_label_folders(path: Path | str) -> Iterator[LocatedRecord]:
    """`folder/label/*.txt`: the name of the folder is the label of every file in it."""
    labels = sorted(entry for entry in Path(path).iterdir() if entry.is_dir())
    if not labels:
        raise ValueError(f"{path}: no folder in it; make one for each label, with .txt files")
    for label in labels:
        for file in text_files(label):
            yield str(file), {"text": read_text(file).removesuffix("\n"), "label": label.name}


def text_files(folder: Path, pattern: str = "*.txt") -> list[Path]:
    """Text files of a folder, in order, gzipped or not."""
    files = sorted({*folder.glob(pattern), *folder.glob(f"{pattern}.gz")})
    if not files:
        raise ValueError(f"{folder}: no .txt or .txt.gz file in it")
    return files


class SplitFiles(ABC):
    """A corpus in files, by split; a split without files is held out of train, in `shares`."""

    paths: dict[str, tuple[Path | str, ...]]
    shares: dict[str, float]

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if split in self.paths or split in self.shares)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        return (record for _, record in self._located_records(split))

    def location(self, split: str, index: int) -> str:
        """File and line of a record, or its file alone; found by reading up to it."""
        for position, (location, _) in enumerate(self._located_records(split)):
            if position == index:
                return location
        raise ValueError(f"{split} has no record {index + 1}")

    @abstractmethod
    def _located_records(self, split: str) -> Iterator[LocatedRecord]:
        """The records of a split, and where each stands."""


class HashSplitFiles(SplitFiles):
    """What is held out of train is chosen by a hash of the text: equal texts are in one split."""

    hash_field = "text"  # the field that is meant

    def _located_records(self, split: str) -> Iterator[LocatedRecord]:
        source_split = split if split in self.paths else "train"
        return self._select_split(split, source_split, self._read_files(self.paths[source_split]))

    def _select_split(
        self, split: str, source_split: str, records: Iterator[LocatedRecord]
    ) -> Iterator[LocatedRecord]:
        """Of the records of a split that has files, those of this one."""
        count = 0
        for location, record in records:
            is_held_out = source_split == "train" and self.shares
            if is_held_out and hash_split(self.hash_key(record), self.shares) != split:
                continue
            count += 1
            yield location, record
        if not count:
            path = display_name(self.paths[source_split][0])
            raise ValueError(f"{path}: nothing of it falls to {split}; give files for {split}")

    def hash_key(self, record: Record) -> str:
        """What tells that two records are the same."""
        return record[self.hash_field]

    @abstractmethod
    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        """The records of these files, and where each stands."""


class LabeledTextFiles(HashSplitFiles):
    """A corpus in files of one format: for each split a file, two parallel files, or a folder.

    `columns` is for TSV and CSV without a header and for parallel files; `fields` for JSON lines,
    and for TSV and CSV with a header. A dev or test that is not given is split off: a share
    `held_out` of train each, by a hash of the text, so that equal texts are in one split.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: LabeledTextFormat | None = None,  # noqa: A002 (the word in the config)
        columns: Sequence[str] | None = None,
        fields: Mapping[str, str] | None = None,
        held_out: float = 0.1,
    ) -> None:
        self.paths = paths_by_split(train, dev, test)
        self.format: LabeledTextFormat = format or guess_format(self.paths["train"])
        self.columns = None if columns is None else tuple(columns)
        self.fields = None if fields is None else dict(fields)
        self.shares = held_out_shares(self.paths, held_out)
        self._check()

    def describe(self) -> str:
        each = [
            f"{split} {' + '.join(map(display_name, paths))}" for split, paths in self.paths.items()
        ]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"labeled ({self.format}): {', '.join(each)}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        columns = self.columns or FIELDS
        match self.format:
            case "tsv" | "csv":
                located_records = read_table(paths[0], self.format, self.columns, self.fields)
            case "jsonl":
                fields = self.fields or {name: name for name in FIELDS}
                located_records = with_line_locations(
                    paths[0], read_json_lines(paths[0], fields, extra_types={"label": int})
                )
            case "parallel":
                located_records = with_line_locations(paths[-1], read_parallel(paths, columns))
            case "folder":
                located_records = read_label_folders(paths[0])
        for location, record in located_records:
            label = record["label"]
            if not isinstance(label, str):
                record["label"] = json.dumps(label)  # 1, true
            elif not label:
                raise ValueError(f"{location}: the label is empty")
            yield location, record

    def _check(self) -> None:
        """What is wrong is told before the work."""
        if self.format == "jsonl" and self.columns is not None:
            raise ValueError("columns do not fit jsonl: name its fields in fields")
        if self.format in ("parallel", "folder") and self.fields is not None:
            raise ValueError(f"fields do not fit {self.format}: use columns for parallel files")
        if self.columns is not None and self.fields is not None:
            raise ValueError("give columns (no header) or fields (with a header), not both")
        for setting, names in (("columns", self.columns), ("fields", self.fields)):
            for needed in FIELDS:
                if names is not None and list(names).count(needed) != 1:
                    raise ValueError(f"{setting} must name {needed!r} once, not {list(names)}")
        sides = len(self.columns or FIELDS) if self.format == "parallel" else 1
        for split, paths in self.paths.items():
            if len(paths) != sides:
                expected_by_format = {"parallel": f"{sides} files", "folder": "one folder"}
                expected = expected_by_format.get(self.format, "one file")
                raise ValueError(f"{split}: {self.format} needs {expected}, not {len(paths)}")
            for path in paths:
                if self.format != "folder":
                    check_file(path)
                elif not Path(path).is_dir():
                    raise ValueError(f"{path}: there is no such folder")


def with_line_locations(path: Path | str, records: Iterator[Record]) -> Iterator[LocatedRecord]:
    """Records of a file that has one a line."""
    return ((f"{display_name(path)}:{number}", record) for number, record in enumerate(records, 1))


def paths_by_split(
    train: Paths, dev: Paths | None, test: Paths | None
) -> dict[str, tuple[Path | str, ...]]:
    """The files of each split that has any."""
    given_paths = {"train": train, "dev": dev, "test": test}
    return {split: path_tuple(paths) for split, paths in given_paths.items() if paths is not None}


def path_tuple(paths: Paths) -> tuple[Path | str, ...]:
    return (paths,) if isinstance(paths, Path | str) else tuple(paths)


def guess_format(paths: Sequence[Path | str]) -> LabeledTextFormat:
    """The format, by the number of the files, what they are, or the end of their name."""
    if len(paths) > 1:
        return "parallel"
    if str(paths[0]) == STDIN:
        return "tsv"
    if Path(paths[0]).is_dir():
        return "folder"
    suffix = path_suffix(paths[0])
    if suffix not in FORMAT_BY_SUFFIX:
        supported = ", ".join(FORMAT_BY_SUFFIX)
        raise ValueError(
            f"{paths[0]}: {suffix or 'no suffix'} tells no format ({supported}); name one"
        )
    return FORMAT_BY_SUFFIX[suffix]


def held_out_shares(given_splits: Mapping[str, object], held_out: float) -> dict[str, float]:
    """The share of train for each split that is not given; none where nothing is held out."""
    if not 0 <= held_out < 0.5:
        raise ValueError(f"held_out must be at least 0 and less than 0.5, not {held_out}")
    return {split: held_out for split in ("dev", "test") if split not in given_splits and held_out}


def hash_split(text: str, shares: Mapping[str, float]) -> str:
    """The split of a text by a stable hash: equal texts are never in two."""
    position = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64
    for split, share in shares.items():
        if position < share:
            return split
        position -= share
    return "train"
