"""Proteins with the state of each residue, from files: FASTA-like text, tables, JSON lines.

    fasta      >name, a line of residues (more lines: aligned sequences), a line of states
    csv, tsv   with a header
    jsonl      {"sequence": "MKV", "states": "CEE", "alignment": ["MRV", "M-V"]}

Records are {"text": residues, and those of aligned sequences behind spaces, "states": …}. In an
aligned sequence "-" is a gap; "?" is a state that nobody knows, which is neither taught nor scored.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from regard.data.corpus import Record
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
    read_table,
)
from regard.data.formats.lines import check_file, display_name, parse_json_lines, read_lines
from regard.data.formats.text_pairs import Paths, path_suffix

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"  # the twenty; any other letter is one that is not known: X
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
    """A sequence and those aligned with it, in capitals; or an error that says what is wrong."""
    rows = text.upper().replace(".", GAP).split()
    if not rows:
        raise ValueError(f"{location}: no residues; give letters such as MKVLA")
    for row in rows:
        for number, letter in enumerate(row, 1):
            if letter != GAP and not ("A" <= letter <= "Z"):
                raise ValueError(f"{location}: residue {number} is {letter!r}; give letters")
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{location}: an aligned sequence has {len(row)} places, the first one "
                f"{len(rows[0])}"
            )
    if GAP in rows[0]:
        position = rows[0].index(GAP) + 1
        raise ValueError(
            f"{location}: the first sequence has a gap at {position}; take the column out"
        )
    return rows


def protein_record(text: str, states: str, location: str) -> Record:
    """A record, or an error that says what is wrong with it."""
    rows, states = parse_sequences(text, location), states.strip()
    if len(states) != len(rows[0]):
        raise ValueError(
            f"{location}: {len(states)} states for {len(rows[0])} residues; give one for each"
        )
    if any(state.isspace() for state in states):
        raise ValueError(
            f"{location}: a state is a space; write {UNKNOWN_STATE!r} where it is not known"
        )
    return {"text": " ".join(rows), "states": states}


def read_fasta(path: Path | str) -> Iterator[LocatedRecord]:
    """Blocks that begin with `>`, their last line the states."""
    location, block = "", list[str]()

    def block_record() -> LocatedRecord:
        if len(block) < 2:
            raise ValueError(f"{location}: {len(block)} lines below it; {FASTA_LAYOUT}")
        return location, protein_record(" ".join(block[:-1]), block[-1], location)

    for number, line in enumerate(read_lines(path), 1):
        if line.startswith(">"):
            if location:
                yield block_record()
            location, block = f"{display_name(path)}:{number}", []
        elif line.strip():
            if not location:
                raise ValueError(
                    f"{display_name(path)}:{number}: this is before the first >; {FASTA_LAYOUT}"
                )
            block.append(line.strip())
    if location:
        yield block_record()


def read_protein_objects(path: Path | str, fields: Mapping[str, str]) -> Iterator[LocatedRecord]:
    """An object a line; its `alignment` may be missing."""
    for location, data in parse_json_lines(path):
        if not isinstance(data, dict):
            raise ValueError(f"{location}: expected an object with {', '.join(fields.values())}")
        for name in fields.values():
            if not isinstance(data.get(name), str):
                raise ValueError(f"{location}: {name!r} must be there, and a text")
        aligned: Any = data.get("alignment", [])
        if not (
            isinstance(aligned, list) and all(isinstance(sequence, str) for sequence in aligned)
        ):
            raise ValueError(f"{location}: 'alignment' must be a list of texts")
        rows = " ".join([data[fields["sequence"]], *aligned])
        yield location, protein_record(rows, data[fields["states"]], location)


class ProteinFiles(HashSplitFiles):
    """A corpus in files of one format; a dev or test that is not given is held out of train.

    It is a share `held_out` of train each, by a hash of the first sequence.
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
    ) -> None:
        self.paths = paths_by_split(train, dev, test)
        self.format: ProteinFormat = format or guess_format(self.paths["train"][0])
        self.fields = {**FIELDS, **(fields or {})}
        if set(self.fields) != set(FIELDS):
            raise ValueError(f"fields must name sequence and states, not {list(self.fields)}")
        self.shares = held_out_shares(self.paths, held_out)
        for path in (path for paths in self.paths.values() for path in paths):
            check_file(path)

    def describe(self) -> str:
        each = [
            f"{split} {' + '.join(map(display_name, paths))}" for split, paths in self.paths.items()
        ]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"proteins ({self.format}): {', '.join(each)}; license not stated"

    def hash_key(self, record: Record) -> str:
        return record["text"].split()[0]

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        for path in paths:
            match self.format:
                case "fasta":
                    yield from read_fasta(path)
                case "csv" | "tsv":
                    for location, row in read_table(path, self.format, fields=self.fields):
                        yield location, protein_record(row["sequence"], row["states"], location)
                case "jsonl":
                    yield from read_protein_objects(path, self.fields)


def guess_format(path: Path | str) -> ProteinFormat:
    suffix = path_suffix(path)
    if suffix not in FORMAT_BY_SUFFIX:
        supported = ", ".join(FORMAT_BY_SUFFIX)
        raise ValueError(f"{path}: {suffix or 'no suffix'} tells no format ({supported}); name one")
    return FORMAT_BY_SUFFIX[suffix]
