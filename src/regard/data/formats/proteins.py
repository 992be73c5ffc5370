"""Proteins with the secondary structure of each residue: FASTA-like text, tables, JSON lines.

    fasta      >name, a line of residues (further lines: aligned sequences), a line of states
    csv, tsv   with a header
    jsonl      {"sequence": "MKV", "states": "CEE", "alignment": ["MRV", "M-V"]}

Records are {"text": residues, then aligned sequences after spaces, "states": …}. In an aligned
sequence "-" is a gap. "?" is an unknown state, which counts in neither loss nor metrics.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from regard.data.corpus import Record
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
    read_table,
)
from regard.data.formats.lines import check_file, display_name, parse_json_lines, read_lines
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths, format_from_suffix
from regard.errors import InputError

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"  # the twenty amino acids; other letters become X
UNKNOWN_RESIDUE, GAP, UNKNOWN_STATE = "X", "-", "?"
ALPHABET = RESIDUES + UNKNOWN_RESIDUE + GAP

ProteinFormat = Literal["fasta", "csv", "tsv", "jsonl"]
FORMAT_BY_SUFFIX: dict[str, ProteinFormat] = {
    **dict.fromkeys((".fasta", ".fa", ".txt"), "fasta"),
    ".csv": "csv",
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
}
FIELDS = {"sequence": "sequence", "states": "states"}
FASTA_LAYOUT = "a protein is >name, a line of residues and a line of states"


def parse_sequences(text: str, location: str) -> list[str]:
    """Parse a sequence and its aligned sequences, in capitals; errors name `location`."""
    rows = text.upper().replace(".", GAP).split()
    if not rows:
        raise InputError(f"{location}: no residues; give letters such as MKVLA")
    for row in rows:
        for number, letter in enumerate(row, 1):
            if letter != GAP and not ("A" <= letter <= "Z"):
                raise InputError(f"{location}: residue {number} is {letter!r}; give letters")
        if len(row) != len(rows[0]):
            raise InputError(
                f"{location}: an aligned sequence has {len(row)} positions, but the first has "
                f"{len(rows[0])}"
            )
    if GAP in rows[0]:
        position = rows[0].index(GAP) + 1
        raise InputError(
            f"{location}: the first sequence has a gap at {position}; remove the column"
        )
    return rows


def protein_record(text: str, states: str, location: str) -> Record:
    """Build a record from sequences and states; errors name `location`."""
    rows, states = parse_sequences(text, location), states.strip()
    if len(states) != len(rows[0]):
        raise InputError(
            f"{location}: {len(states)} states for {len(rows[0])} residues; give one for each"
        )
    if any(state.isspace() for state in states):
        raise InputError(
            f"{location}: a state is a space; write {UNKNOWN_STATE!r} for unknown states"
        )
    return {"text": " ".join(rows), "states": states}


def read_fasta(path: Path | str, skipped: SkippedRows) -> Iterator[LocatedRecord]:
    """Read blocks that begin with `>` and end with a line of states."""
    location, block = "", list[str]()

    def block_record() -> Iterator[LocatedRecord]:
        with skipped.row(location):
            if len(block) < 2:
                raise InputError(f"{location}: {len(block)} lines below it; {FASTA_LAYOUT}")
            yield location, protein_record(" ".join(block[:-1]), block[-1], location)

    for number, line in enumerate(read_lines(path), 1):
        if line.startswith(">"):
            if location:
                yield from block_record()
            location, block = f"{display_name(path)}:{number}", []
        elif line.strip():
            if not location:
                raise InputError(
                    f"{display_name(path)}:{number}: text before the first >; {FASTA_LAYOUT}"
                )
            block.append(line.strip())
    if location:
        yield from block_record()


def read_protein_objects(
    path: Path | str, fields: Mapping[str, str], skipped: SkippedRows
) -> Iterator[LocatedRecord]:
    """Read one object a line; `alignment` is optional."""
    for location, data in parse_json_lines(path, skipped=skipped):
        with skipped.row(location):
            yield location, record_from_object(data, fields, location)


def record_from_object(data: object, fields: Mapping[str, str], location: str) -> Record:
    """Build a record from an object; errors name `location`."""
    if not isinstance(data, dict):
        raise InputError(f"{location}: expected an object with {', '.join(fields.values())}")
    for name in fields.values():
        if not isinstance(data.get(name), str):
            raise InputError(f"{location}: {name!r} must be a text; add it")
    aligned = data.get("alignment", [])
    if not (isinstance(aligned, list) and all(isinstance(sequence, str) for sequence in aligned)):
        raise InputError(f"{location}: 'alignment' must be a list of texts")
    rows = " ".join([data[fields["sequence"]], *aligned])
    return protein_record(rows, data[fields["states"]], location)


class ProteinFiles(HashSplitFiles):
    """A corpus in files of one format.

    A missing dev or test is a share `held_out` of train, by a hash of the first sequence.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: ProteinFormat | None = None,  # noqa: A002 (the word in the config)
        fields: Mapping[str, str] | None = None,
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        self.format: ProteinFormat = format or format_from_suffix(
            self.paths["train"][0], FORMAT_BY_SUFFIX
        )
        self.fields = {**FIELDS, **(fields or {})}
        if set(self.fields) != set(FIELDS):
            raise InputError(f"fields must name sequence and states, not {list(self.fields)}")
        self.shares = held_out_shares(self.paths, held_out)
        for path in (path for paths in self.paths.values() for path in paths):
            check_file(path)

    def describe(self) -> str:
        return f"proteins ({self.format}): {self.describe_files()}; license not stated"

    def hash_key(self, record: Record) -> str:
        return record["text"].split()[0]

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        for path in paths:
            match self.format:
                case "fasta":
                    yield from read_fasta(path, self.skipped)
                case "csv" | "tsv":
                    rows = read_table(path, self.format, fields=self.fields, skipped=self.skipped)
                    for location, row in rows:
                        with self.skipped.row(location):
                            yield location, protein_record(row["sequence"], row["states"], location)
                case "jsonl":
                    yield from read_protein_objects(path, self.fields, self.skipped)
