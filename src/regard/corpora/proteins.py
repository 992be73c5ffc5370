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

from regard.corpora.corpus import Record
from regard.corpora.files import Paths, suffix_of
from regard.corpora.labelled import ByHash, Placed, by_split, shares, table
from regard.corpora.lines import check_file, lines, parsed_lines, shown

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"  # the twenty; any other letter is one that is not known: X
OTHER, GAP, UNTOLD = "X", "-", "?"
ALPHABET = RESIDUES + OTHER + GAP

Format = Literal["fasta", "csv", "tsv", "jsonl"]
SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".fasta", ".fa", ".txt"), "fasta"),
    ".csv": "csv",
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
}
FIELDS = {"sequence": "sequence", "states": "states"}
LAYOUT = "a protein is >name, a line of residues and a line of states"


def sequences_of(text: str, place: str) -> list[str]:
    """A sequence and those aligned with it, in capitals; or an error that says what is wrong."""
    rows = text.upper().replace(".", GAP).split()
    if not rows:
        raise ValueError(f"{place}: no residues; give letters such as MKVLA")
    for row in rows:
        for number, letter in enumerate(row, 1):
            if letter != GAP and not ("A" <= letter <= "Z"):
                raise ValueError(f"{place}: residue {number} is {letter!r}; give letters")
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{place}: an aligned sequence has {len(row)} places, the first one {len(rows[0])}"
            )
    if GAP in rows[0]:
        where = rows[0].index(GAP) + 1
        raise ValueError(f"{place}: the first sequence has a gap at {where}; take the column out")
    return rows


def protein(text: str, states: str, place: str) -> Record:
    """A record, or an error that says what is wrong with it."""
    rows, states = sequences_of(text, place), states.strip()
    if len(states) != len(rows[0]):
        raise ValueError(
            f"{place}: {len(states)} states for {len(rows[0])} residues; give one for each"
        )
    if any(state.isspace() for state in states):
        raise ValueError(f"{place}: a state is a space; write {UNTOLD!r} where it is not known")
    return {"text": " ".join(rows), "states": states}


def fasta(path: Path | str) -> Iterator[Placed]:
    """Blocks that begin with `>`, their last line the states."""
    place, block = "", list[str]()

    def closed() -> Placed:
        if len(block) < 2:
            raise ValueError(f"{place}: {len(block)} lines below it; {LAYOUT}")
        return place, protein(" ".join(block[:-1]), block[-1], place)

    for number, line in enumerate(lines(path), 1):
        if line.startswith(">"):
            if place:
                yield closed()
            place, block = f"{shown(path)}:{number}", []
        elif line.strip():
            if not place:
                raise ValueError(f"{shown(path)}:{number}: this is before the first >; {LAYOUT}")
            block.append(line.strip())
    if place:
        yield closed()


def objects(path: Path | str, fields: Mapping[str, str]) -> Iterator[Placed]:
    """An object a line; its `alignment` may be missing."""
    for place, found in parsed_lines(path):
        if not isinstance(found, dict):
            raise ValueError(f"{place}: expected an object with {', '.join(fields.values())}")
        for name in fields.values():
            if not isinstance(found.get(name), str):
                raise ValueError(f"{place}: {name!r} must be there, and a text")
        others: Any = found.get("alignment", [])
        if not (isinstance(others, list) and all(isinstance(one, str) for one in others)):
            raise ValueError(f"{place}: 'alignment' must be a list of texts")
        rows = " ".join([found[fields["sequence"]], *others])
        yield place, protein(rows, found[fields["states"]], place)


class Proteins(ByHash):
    """A corpus in files of one format; a dev or test that is not given is held out of train.

    It is a share `held_out` of train each, by a hash of the first sequence.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: Format | None = None,  # noqa: A002 (the word in the config)
        fields: Mapping[str, str] | None = None,
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        self.format: Format = format or guessed(self.paths["train"][0])
        self.fields = {**FIELDS, **(fields or {})}
        if set(self.fields) != set(FIELDS):
            raise ValueError(f"fields must name sequence and states, not {list(self.fields)}")
        self.shares = shares(self.paths, held_out)
        for path in (path for paths in self.paths.values() for path in paths):
            check_file(path)

    def describe(self) -> str:
        each = [f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"proteins ({self.format}): {', '.join(each)}; licence as you know it"

    def key(self, record: Record) -> str:
        return record["text"].split()[0]

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        for path in paths:
            match self.format:
                case "fasta":
                    yield from fasta(path)
                case "csv" | "tsv":
                    for place, row in table(path, self.format, fields=self.fields):
                        yield place, protein(row["sequence"], row["states"], place)
                case "jsonl":
                    yield from objects(path, self.fields)


def guessed(path: Path | str) -> Format:
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{path}: {suffix or 'no suffix'} tells no format ({known}); name one")
    return SUFFIXES[suffix]
