"""Piano rolls from files: pieces of steps of MIDI pitches, from 21 (A0) to 108 (C8).

    json     a list of pieces, or {"train": …, "valid": …, "test": …} of such lists
    jsonl    a piece a line

A piece is [[60, 64, 67], [], [62]]: three notes together, a silence, one note. Records are
{"text": the piece as JSON}, in one spelling, so that equal pieces are equal texts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.corpora.files import Paths, suffix_of
from regard.corpora.labelled import ByHash, Placed, by_split, shares
from regard.corpora.lines import check_file, parsed_lines, shown, whole

LOWEST, HIGHEST = 21, 108  # the keys of a piano
THEIRS = {"train": ("train",), "dev": ("valid", "dev"), "test": ("test",)}
LINES, WHOLE = (".jsonl", ".ndjson"), (".json",)

Step = tuple[int, ...]


def steps_of(text: str, place: str) -> list[Step]:
    """A piece, or the beginning of one, from JSON; `place` is for messages."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{place}: not JSON ({error}); a piece is as [[60, 64], [62]]") from None
    return checked(found, place)


def checked(piece: Any, place: str) -> list[Step]:
    """Steps of pitches in order, each once; or an error that says where it is none."""
    if not isinstance(piece, list):
        raise ValueError(f"{place}: a piece must be a list of steps, as [[60, 64], [62]]")
    found = []
    for number, step in enumerate(piece, 1):
        where = f"{place}, step {number}"
        if not isinstance(step, list):
            raise ValueError(f"{where}: must be a list of pitches, as [60, 64], not {step!r}")
        for pitch in step:
            if type(pitch) is not int or not LOWEST <= pitch <= HIGHEST:
                keys = f"a key of the piano, from {LOWEST} to {HIGHEST}"
                raise ValueError(f"{where}: pitch {pitch!r} is not {keys}; move the piece")
        found.append(tuple(sorted(set(step))))
    return found


class Rolls(ByHash):
    """A corpus in files; one that has several splits inside gives them all.

    A dev or test that is nowhere given is split off: a share `held_out` of train each, by a hash
    of the piece.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        for path in (path for paths in self.paths.values() for path in paths):
            check_file(path)
            if suffix_of(path) not in (*LINES, *WHOLE):
                known = ", ".join((*WHOLE, *LINES))
                raise ValueError(f"{path}: the name tells no format; let it end in {known}")
        given = [parsed(path) for path in self.paths["train"] if suffix_of(path) in WHOLE]
        for split in ("dev", "test"):
            if split not in self.paths and given and all(inside(one, split) for one in given):
                self.paths[split] = self.paths["train"]
        self.shares = shares(self.paths, held_out)

    def describe(self) -> str:
        each = [f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"rolls: {', '.join(each)}; licence as you know it"

    def _placed(self, split: str) -> Iterator[Placed]:
        source = split if split in self.paths else "train"
        return self._kept(split, source, self._all(self.paths[source], source))

    def _all(self, paths: Sequence[Path | str], split: str = "train") -> Iterator[Placed]:
        for path in paths:
            for place, piece in pieces(path, split):
                if not (steps := checked(piece, place)):
                    raise ValueError(f"{place}: a piece without steps; take it out")
                yield place, {"text": json.dumps(steps)}


def pieces(path: Path | str, split: str) -> Iterator[tuple[str, Any]]:
    """What a file has for a split, not checked yet, and where it stands."""
    if suffix_of(path) in LINES:
        yield from parsed_lines(path, "piece")
        return
    found, place = parsed(path), shown(path)
    if isinstance(found, dict):
        name = inside(found, split)
        if name is None:
            raise ValueError(f"{place}: has no {THEIRS[split][0]!r}; it has {', '.join(found)}")
        found, place = found[name], f"{place}: {name}"
    if not isinstance(found, list):
        raise ValueError(f"{place}: must be a list of pieces, or {{train, valid, test}} of them")
    for number, piece in enumerate(found, 1):
        yield f"{place}{',' if ':' in place else ':'} piece {number}", piece


def parsed(path: Path | str) -> Any:
    try:
        return json.loads(whole(path))
    except json.JSONDecodeError as error:
        what = f"not JSON ({error.msg}, column {error.colno})"
        hint = "mend it; a file with a piece a line ends in .jsonl"
        raise ValueError(f"{shown(path)}:{error.lineno}: {what}; {hint}") from None


def inside(found: Any, split: str) -> str | None:
    """What a file calls a split, if it has it."""
    if not isinstance(found, Mapping):
        return None
    return next((name for name in THEIRS[split] if name in found), None)
