"""Labeled texts from files: TSV, CSV, JSON lines, parallel files, or a folder for each label.

Records are {"text": …, "label": …}, or {"text": …, "pair": …, "label": …} for a pair of texts.
Files ending in .gz are decompressed. Records are read one at a time.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from regard.data.corpus import SPLITS, Record, check_split
from regard.data.formats.held_out import hash_split, held_out_shares
from regard.data.formats.lines import (
    STDIN,
    check_file,
    display_name,
    read_text,
)
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.tables import read_rows
from regard.data.formats.text_pairs import (
    Paths,
    format_from_suffix,
    read_located_json_lines,
    read_parallel,
)
from regard.errors import InputError

LabeledTextFormat = Literal["tsv", "csv", "jsonl", "parallel", "folder"]
LocatedRecord = tuple[str, Record]  # location, record

FIELDS = ("text", "label")
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
    skipped: SkippedRows | None = None,
) -> Iterator[LocatedRecord]:
    """Yield one record a row. `columns` names every column in order; "-" skips one.

    With `fields`, the first row is a header, and they map our fields to its names. TSV has no
    quoting. In CSV, a cell in double quotes may contain commas and line ends.
    """
    for number, record in read_rows(path, format, columns or FIELDS, fields, skipped):
        yield f"{display_name(path)}:{number}", record


def read_label_folders(path: Path | str) -> Iterator[LocatedRecord]:
    """Read `folder/label/*.txt`: the name of a folder is the label of its files."""
    labels = sorted(entry for entry in Path(path).iterdir() if entry.is_dir())
    if not labels:
        raise InputError(f"{path}: no folders; make one with .txt files for each label")
    for label in labels:
        for file in text_files(label):
            yield str(file), {"text": read_text(file).removesuffix("\n"), "label": label.name}


def text_files(folder: Path, pattern: str = "*.txt") -> list[Path]:
    """Return the text files of a folder, gzipped or not, in order."""
    files = sorted({*folder.glob(pattern), *folder.glob(f"{pattern}.gz")})
    if not files:
        raise InputError(f"{folder}: no .txt or .txt.gz file; add one")
    return files


class SplitFiles(ABC):
    """A corpus in files by split; `shares` are the parts of train that other splits hold out."""

    paths: dict[str, tuple[Path | str, ...]]
    shares: dict[str, float]
    skipped: SkippedRows

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if split in self.paths or split in self.shares)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        return (record for _, record in self._located_records(split))

    def location(self, split: str, index: int) -> str:
        """Return file and line of a record, or the file alone; the file is read up to it."""
        for position, (location, _) in enumerate(self._located_records(split)):
            if position == index:
                return location
        raise InputError(f"{split} has no record {index + 1}")

    def describe_files(self) -> str:
        """Return the files of each split, the held-out shares, and how many rows were skipped."""
        each = [
            f"{split} {' + '.join(map(display_name, paths))}" for split, paths in self.paths.items()
        ]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        each += [self.skipped.describe()] if self.skipped.messages else []
        return ", ".join(each)

    @abstractmethod
    def _located_records(self, split: str) -> Iterator[LocatedRecord]:
        """Yield the records of a split, each with its location."""


class HashSplitFiles(SplitFiles):
    """A corpus that chooses held-out records by a hash, so that equal texts are in one split."""

    hash_field = "text"

    def _located_records(self, split: str) -> Iterator[LocatedRecord]:
        source_split = split if split in self.paths else "train"
        return self._select_split(split, source_split, self._read_files(self.paths[source_split]))

    def _select_split(
        self, split: str, source_split: str, records: Iterator[LocatedRecord]
    ) -> Iterator[LocatedRecord]:
        """Select the records of `split` from those of `source_split`, which has files."""
        count = 0
        for location, record in records:
            is_held_out = source_split == "train" and self.shares
            if is_held_out and hash_split(self.hash_key(record), self.shares) != split:
                continue
            count += 1
            yield location, record
        if not count:
            path = display_name(self.paths[source_split][0])
            raise InputError(f"{path}: no records fall into {split}; give files for {split}")

    def hash_key(self, record: Record) -> str:
        """Return the text to hash; records with equal keys are in one split."""
        return record[self.hash_field]

    @abstractmethod
    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        """Yield the records of these files, each with its location."""


class LabeledTextFiles(HashSplitFiles):
    """A corpus in files of one format: a file, parallel files, or a folder for each split.

    `columns` is for parallel files and for TSV and CSV without a header. `fields` is for JSON lines
    and for TSV and CSV with a header. A missing dev or test is a share `held_out` of train, by a
    hash of the text, so that equal texts are in one split.
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
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        self.format: LabeledTextFormat = format or guess_format(self.paths["train"])
        self.columns = None if columns is None else tuple(columns)
        self.fields = None if fields is None else dict(fields)
        self.shares = held_out_shares(self.paths, held_out)
        self._check()

    def describe(self) -> str:
        return f"labeled ({self.format}): {self.describe_files()}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        columns = self.columns or FIELDS
        match self.format:
            case "tsv" | "csv":
                located_records = read_table(
                    paths[0], self.format, self.columns, self.fields, self.skipped
                )
            case "jsonl":
                fields = self.fields or {name: name for name in FIELDS}
                located_records = read_located_json_lines(
                    paths[0], fields, extra_types={"label": int}, skipped=self.skipped
                )
            case "parallel":
                located_records = with_line_locations(paths[-1], read_parallel(paths, columns))
            case "folder":
                located_records = read_label_folders(paths[0])
        for location, record in located_records:
            label = record["label"]
            if not isinstance(label, str):
                record["label"] = json.dumps(label)  # 1 and true become text
            elif not label:
                self.skipped.add(location, "the label is empty")
                continue
            yield location, record

    def _check(self) -> None:
        """Check settings and paths before any file is read."""
        if self.format == "jsonl" and self.columns is not None:
            raise InputError("columns do not apply to jsonl; set fields")
        if self.format in ("parallel", "folder") and self.fields is not None:
            raise InputError(f"fields do not apply to {self.format}; set columns for parallel")
        if self.columns is not None and self.fields is not None:
            raise InputError("give columns (no header) or fields (with a header), not both")
        for setting, names in (("columns", self.columns), ("fields", self.fields)):
            for needed in FIELDS:
                if names is not None and list(names).count(needed) != 1:
                    raise InputError(f"{setting} must name {needed!r} once, not {list(names)}")
        sides = len(self.columns or FIELDS) if self.format == "parallel" else 1
        for split, paths in self.paths.items():
            if len(paths) != sides:
                expected_by_format = {"parallel": f"{sides} files", "folder": "one folder"}
                expected = expected_by_format.get(self.format, "one file")
                raise InputError(f"{split}: {self.format} needs {expected}, not {len(paths)}")
            for path in paths:
                if self.format != "folder":
                    check_file(path)
                elif not Path(path).is_dir():
                    raise InputError(f"{path}: there is no such folder")


def with_line_locations(path: Path | str, records: Iterator[Record]) -> Iterator[LocatedRecord]:
    """Add file and line to the records of a file that has one a line."""
    return ((f"{display_name(path)}:{number}", record) for number, record in enumerate(records, 1))


def paths_by_split(
    train: Paths, dev: Paths | None, test: Paths | None
) -> dict[str, tuple[Path | str, ...]]:
    """Return the files of each split that has any."""
    given_paths = {"train": train, "dev": dev, "test": test}
    return {split: path_tuple(paths) for split, paths in given_paths.items() if paths is not None}


def path_tuple(paths: Paths) -> tuple[Path | str, ...]:
    return (paths,) if isinstance(paths, Path | str) else tuple(paths)


def guess_format(paths: Sequence[Path | str]) -> LabeledTextFormat:
    """Infer the format: several files are parallel, a folder is a folder, a file has a suffix."""
    if len(paths) > 1:
        return "parallel"
    if str(paths[0]) == STDIN:
        return "tsv"
    if Path(paths[0]).is_dir():
        return "folder"
    return format_from_suffix(paths[0], FORMAT_BY_SUFFIX)
