"""Piano rolls from files: pieces as steps of MIDI pitches, from 21 (A0) to 108 (C8).

    json     a list of pieces, or {"train": …, "valid": …, "test": …} of such lists
    jsonl    one piece a line

A piece is [[60, 64, 67], [], [62]]: three notes together, a rest, one note. Records are {"text":
the piece as JSON}, in a normal form, so that equal pieces are equal texts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
)
from regard.data.formats.lines import check_file, display_name, parse_json_lines, read_text
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths, path_suffix
from regard.errors import InputError
from regard.parsing import parse_json

LOWEST_PITCH, HIGHEST_PITCH = 21, 108  # the keys of a piano
SPLIT_NAMES = {"train": ("train",), "dev": ("valid", "dev"), "test": ("test",)}
LINE_SUFFIXES, JSON_SUFFIXES = (".jsonl", ".ndjson"), (".json",)

RollStep = tuple[int, ...]


def parse_piece(text: str, location: str) -> list[RollStep]:
    """Parse a piece, or the beginning of one, from JSON; errors name `location`."""
    return to_steps(parse_json(text, location, "write a piece as [[60, 64], [62]]"), location)


def to_steps(piece: object, location: str) -> list[RollStep]:
    """Convert decoded JSON to steps of sorted, different pitches; errors name `location`."""
    if not isinstance(piece, list):
        raise InputError(f"{location}: a piece must be a list of steps, as [[60, 64], [62]]")
    steps = []
    for number, step in enumerate(piece, 1):
        step_location = f"{location}, step {number}"
        if not isinstance(step, list):
            raise InputError(
                f"{step_location}: must be a list of pitches, as [60, 64], not {step!r}"
            )
        for pitch in step:
            if type(pitch) is not int or not LOWEST_PITCH <= pitch <= HIGHEST_PITCH:
                keys = f"from {LOWEST_PITCH} to {HIGHEST_PITCH}, the range of a piano"
                raise InputError(
                    f"{step_location}: pitch {pitch!r} is not {keys}; transpose the piece"
                )
        steps.append(tuple(sorted(set(step))))
    return steps


class PianoRollFiles(HashSplitFiles):
    """A corpus in files; a JSON file may contain several splits.

    A missing dev or test is a share `held_out` of train, by a hash of the piece.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        for path in (path for paths in self.paths.values() for path in paths):
            check_file(path)
            if path_suffix(path) not in (*LINE_SUFFIXES, *JSON_SUFFIXES):
                supported = ", ".join((*JSON_SUFFIXES, *LINE_SUFFIXES))
                raise InputError(f"{path}: unknown suffix; use one of {supported}")
        contents = [
            load_json(path) for path in self.paths["train"] if path_suffix(path) in JSON_SUFFIXES
        ]
        for split in ("dev", "test"):
            if (
                split not in self.paths
                and contents
                and all(split_name(content, split) for content in contents)
            ):
                self.paths[split] = self.paths["train"]
        self.shares = held_out_shares(self.paths, held_out)

    def describe(self) -> str:
        return f"rolls: {self.describe_files()}; license not stated"

    def _located_records(self, split: str) -> Iterator[LocatedRecord]:
        source_split = split if split in self.paths else "train"
        return self._select_split(
            split, source_split, self._read_files(self.paths[source_split], source_split)
        )

    def _read_files(
        self, paths: Sequence[Path | str], split: str = "train"
    ) -> Iterator[LocatedRecord]:
        for path in paths:
            for location, piece in read_pieces(path, split, self.skipped):
                with self.skipped.row(location):
                    if not (steps := to_steps(piece, location)):
                        raise InputError(f"{location}: a piece without steps; remove it")
                    yield location, {"text": json.dumps(steps)}


def read_pieces(path: Path | str, split: str, skipped: SkippedRows) -> Iterator[tuple[str, object]]:
    """Yield the location and the unchecked value of each piece of a split."""
    if path_suffix(path) in LINE_SUFFIXES:
        yield from parse_json_lines(path, "piece", skipped)
        return
    data, location = load_json(path), display_name(path)
    if isinstance(data, dict):
        name = split_name(data, split)
        if name is None:
            raise InputError(
                f"{location}: no field {SPLIT_NAMES[split][0]!r}; it has {', '.join(data)}"
            )
        data, location = data[name], f"{location}: {name}"
    if not isinstance(data, list):
        raise InputError(f"{location}: must be a list of pieces, or {{train, valid, test}} of them")
    for number, piece in enumerate(data, 1):
        yield f"{location}{',' if ':' in location else ':'} piece {number}", piece


def load_json(path: Path | str) -> object:
    hint = "correct it, or name a file with one piece a line .jsonl"
    return parse_json(read_text(path), display_name(path), hint)


def split_name(data: object, split: str) -> str | None:
    """Return the name of a split in the data of a file, or None if it has no such split."""
    if not isinstance(data, Mapping):
        return None
    return next((name for name in SPLIT_NAMES[split] if name in data), None)
