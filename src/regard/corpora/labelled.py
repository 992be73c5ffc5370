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

from regard.corpora.corpus import SPLITS, Record, check_split
from regard.corpora.files import SKIPPED, Paths, json_lines, parallel, ragged, suffix_of
from regard.corpora.lines import STDIN, check_file, lines, shown, whole

Format = Literal["tsv", "csv", "jsonl", "parallel", "folder"]
Placed = tuple[str, Record]  # where a record stands, and the record

FIELDS = ("text", "label")
MARKS: dict[str, str] = {"tsv": "single tabs", "csv": "commas"}
SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    ".csv": "csv",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}


def table(
    path: Path | str,
    format: Literal["tsv", "csv"],  # noqa: A002 (the word in the config)
    columns: Sequence[str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> Iterator[Placed]:
    """One record a row. `columns` names every column in order, "-" those to skip.

    With `fields` instead, the first row is a header, and they give its name for each of ours. In a
    TSV nothing is quoted; a cell of a CSV in double quotes may hold commas and line ends.
    """
    rows = quoted(path) if format == "csv" else split_at_tabs(path)
    if fields is None:
        columns = FIELDS if columns is None else columns
    else:
        number, header = next(rows)
        for theirs in fields.values():
            if header.count(theirs) != 1:
                raise ValueError(
                    f"{shown(path)}:{number}: the header must name {theirs!r} once; "
                    f"it has: {', '.join(header)}"
                )
        names = {theirs: ours for ours, theirs in fields.items()}
        columns = [names.get(theirs, SKIPPED) for theirs in header]
    kept = [(place, name) for place, name in enumerate(columns) if name != SKIPPED]
    for number, cells in rows:
        place = f"{shown(path)}:{number}"
        if len(cells) != len(columns):
            raise ValueError(ragged(place, cells, columns, MARKS[format]))
        yield place, {name: cells[where] for where, name in kept}


def split_at_tabs(path: Path | str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines(path), 1):
        yield number, line.split("\t")


def quoted(path: Path | str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV with the line that each begins in."""
    reader = csv.reader((f"{line}\n" for line in lines(path)), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"{shown(path)}:{number}: not CSV ({error}); put a cell with a quote in it in "
                "quotes, and double the quote"
            ) from None
        if row is None:
            return
        yield number, row


def folders(path: Path | str) -> Iterator[Placed]:
    """`folder/label/*.txt`: the name of the folder is the label of every file in it."""
    labels = sorted(place for place in Path(path).iterdir() if place.is_dir())
    if not labels:
        raise ValueError(f"{path}: no folder in it; make one for each label, with .txt files")
    for label in labels:
        for file in text_files(label):
            yield str(file), {"text": whole(file).removesuffix("\n"), "label": label.name}


def text_files(folder: Path, pattern: str = "*.txt") -> list[Path]:
    """Text files of a folder, in order, gzipped or not."""
    found = sorted({*folder.glob(pattern), *folder.glob(f"{pattern}.gz")})
    if not found:
        raise ValueError(f"{folder}: no .txt or .txt.gz file in it")
    return found


class HeldOut(ABC):
    """A corpus in files, by split; a split without files is held out of train, in `shares`."""

    paths: dict[str, tuple[Path | str, ...]]
    shares: dict[str, float]

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(s for s in SPLITS if s in self.paths or s in self.shares)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        return (record for _, record in self._placed(split))

    def place(self, split: str, number: int) -> str:
        """File and line of a record, or its file alone; found by reading up to it."""
        for index, (place, _) in enumerate(self._placed(split)):
            if index == number:
                return place
        raise ValueError(f"{split} has no record {number + 1}")

    @abstractmethod
    def _placed(self, split: str) -> Iterator[Placed]:
        """The records of a split, and where each stands."""


class ByHash(HeldOut):
    """What is held out of train is chosen by a hash of the text: equal texts are in one split."""

    hashed = "text"  # the field that is meant

    def _placed(self, split: str) -> Iterator[Placed]:
        source = split if split in self.paths else "train"
        return self._kept(split, source, self._all(self.paths[source]))

    def _kept(self, split: str, source: str, records: Iterator[Placed]) -> Iterator[Placed]:
        """Of the records of a split that has files, those of this one."""
        found = 0
        for place, record in records:
            held = source == "train" and self.shares
            if held and part_of(self.key(record), self.shares) != split:
                continue
            found += 1
            yield place, record
        if not found:
            path = shown(self.paths[source][0])
            raise ValueError(f"{path}: nothing of it falls to {split}; give files for {split}")

    def key(self, record: Record) -> str:
        """What tells that two records are the same."""
        return record[self.hashed]

    @abstractmethod
    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        """The records of these files, and where each stands."""


class Labelled(ByHash):
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
        format: Format | None = None,  # noqa: A002 (the word in the config)
        columns: Sequence[str] | None = None,
        fields: Mapping[str, str] | None = None,
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        self.format: Format = format or guessed(self.paths["train"])
        self.columns = None if columns is None else tuple(columns)
        self.fields = None if fields is None else dict(fields)
        self.shares = shares(self.paths, held_out)
        self._check()

    def describe(self) -> str:
        each = [f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"labelled ({self.format}): {', '.join(each)}; licence as you know it"

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        columns = self.columns or FIELDS
        match self.format:
            case "tsv" | "csv":
                found = table(paths[0], self.format, self.columns, self.fields)
            case "jsonl":
                fields = self.fields or {name: name for name in FIELDS}
                found = numbered(paths[0], json_lines(paths[0], fields, also={"label": int}))
            case "parallel":
                found = numbered(paths[-1], parallel(paths, columns))
            case "folder":
                found = folders(paths[0])
        for place, record in found:
            label = record["label"]
            if not isinstance(label, str):
                record["label"] = json.dumps(label)  # 1, true
            elif not label:
                raise ValueError(f"{place}: the label is empty")
            yield place, record

    def _check(self) -> None:
        """What is wrong is told before the work."""
        if self.format == "jsonl" and self.columns is not None:
            raise ValueError("columns do not fit jsonl: name its fields in fields")
        if self.format in ("parallel", "folder") and self.fields is not None:
            raise ValueError(f"fields do not fit {self.format}: use columns for parallel files")
        if self.columns is not None and self.fields is not None:
            raise ValueError("give columns (no header) or fields (with a header), not both")
        for where, names in (("columns", self.columns), ("fields", self.fields)):
            for needed in FIELDS:
                if names is not None and list(names).count(needed) != 1:
                    raise ValueError(f"{where} must name {needed!r} once, not {list(names)}")
        sides = len(self.columns or FIELDS) if self.format == "parallel" else 1
        for split, paths in self.paths.items():
            if len(paths) != sides:
                what = {"parallel": f"{sides} files", "folder": "one folder"}
                wanted = what.get(self.format, "one file")
                raise ValueError(f"{split}: {self.format} needs {wanted}, not {len(paths)}")
            for path in paths:
                if self.format != "folder":
                    check_file(path)
                elif not Path(path).is_dir():
                    raise ValueError(f"{path}: there is no such folder")


def numbered(path: Path | str, records: Iterator[Record]) -> Iterator[Placed]:
    """Records of a file that has one a line."""
    return ((f"{shown(path)}:{number}", record) for number, record in enumerate(records, 1))


def by_split(
    train: Paths, dev: Paths | None, test: Paths | None
) -> dict[str, tuple[Path | str, ...]]:
    """The files of each split that has any."""
    given = {"train": train, "dev": dev, "test": test}
    return {split: listed(paths) for split, paths in given.items() if paths is not None}


def listed(paths: Paths) -> tuple[Path | str, ...]:
    return (paths,) if isinstance(paths, Path | str) else tuple(paths)


def guessed(paths: Sequence[Path | str]) -> Format:
    """The format, by the number of the files, what they are, or the end of their name."""
    if len(paths) > 1:
        return "parallel"
    if str(paths[0]) == STDIN:
        return "tsv"
    if Path(paths[0]).is_dir():
        return "folder"
    suffix = suffix_of(paths[0])
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{paths[0]}: {suffix or 'no suffix'} tells no format ({known}); name one")
    return SUFFIXES[suffix]


def shares(given: Mapping[str, object], held_out: float) -> dict[str, float]:
    """The share of train for each split that is not given; none where nothing is held out."""
    if not 0 <= held_out < 0.5:
        raise ValueError(f"held_out must be at least 0 and less than 0.5, not {held_out}")
    return {s: held_out for s in ("dev", "test") if s not in given and held_out}


def part_of(text: str, shares: Mapping[str, float]) -> str:
    """The split of a text by a stable hash: equal texts are never in two."""
    place = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64
    for split, share in shares.items():
        if place < share:
            return split
        place -= share
    return "train"
