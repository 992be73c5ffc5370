"""Tunes in ABC notation from files; each begins with a line `X:`.

Records are {"text": the tune}, in a normal form: only the selected fields, written like `M:6/8`,
without numbers, comments and blank lines. `regard.data.formats.abc_notation` checks whether a
tune can be played.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
)
from regard.data.formats.lines import check_file, display_name, read_lines
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths
from regard.errors import InputError

FIELD = re.compile(r"([A-Za-z+]):\s*(.*?)\s*$")
DEFAULT_FIELDS = "TRMLQPK"


class AbcFiles(HashSplitFiles):
    """A corpus in files of tunes; `header_fields` are the letters of the fields to keep.

    A missing dev or test is a share `held_out` of train, by a hash of the tune.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        header_fields: str = DEFAULT_FIELDS,
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        if "K" not in header_fields:
            raise InputError(
                f"header_fields must contain K, not {header_fields!r}; notes follow after the key"
            )
        self.fields = header_fields
        self.shares = held_out_shares(self.paths, held_out)
        for paths in self.paths.values():
            for path in paths:
                check_file(path)

    def describe(self) -> str:
        return f"tunes: {self.describe_files()}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        for path in paths:
            for location, tune in read_tunes(path):
                with self.skipped.row(location):
                    text = "\n".join(normalized_tune(tune, self.fields, location))
                    yield location, {"text": text}


def read_tunes(path: Path | str) -> Iterator[tuple[str, list[str]]]:
    """Yield the location and the lines of each tune; lines before the first `X:` are skipped."""
    location, tune = "", list[str]()
    for number, line in enumerate(read_lines(path), 1):
        if line.startswith("X:"):
            if location:
                yield location, tune
            location, tune = f"{display_name(path)}:{number}", [line]
        elif location:
            tune.append(line)
        elif line.startswith("K:"):
            raise InputError(
                f"{display_name(path)}:{number}: a key, but no X: before; begin each tune with X:1"
            )
    if not location:
        raise InputError(f"{display_name(path)}: no tune; begin each with a line X:1")
    yield location, tune


def normalized_tune(tune: Sequence[str], fields: str, location: str) -> Iterator[str]:
    """Yield the lines of the tune in normal form; raise an error if it has no key or no note."""
    in_header, has_notes = True, False
    for line in tune:
        text = line.split("%", 1)[0].strip()
        field = FIELD.fullmatch(text)
        if field is None:
            if text and in_header:
                raise InputError(f"{location}: no K: before the notes of this tune; give its key")
            has_notes = has_notes or bool(text)
            if text:
                yield text
        elif field[1] in fields:
            in_header = in_header and field[1] != "K"
            yield f"{field[1]}:{field[2]}"
    if in_header:
        raise InputError(f"{location}: no K: in this tune; give its key")
    if not has_notes:
        raise InputError(f"{location}: no notes after the K: of this tune; remove it")
