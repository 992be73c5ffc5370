"""Tunes in ABC notation from files, each from a line `X:` up to the next.

Records are {"text": the tune}, in one spelling: fields as `M:6/8`, of those that are kept; no
number, no comments, no blank lines. `regard.corpora.abc` can tell whether it can be played.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from regard.corpora.files import Paths
from regard.corpora.labelled import ByHash, Placed, by_split, shares
from regard.corpora.lines import check_file, lines, shown

FIELD = re.compile(r"([A-Za-z+]):\s*(.*?)\s*$")
KEPT = "TRMLQPK"


class Tunes(ByHash):
    """A corpus in files of tunes; `fields` are letters of the fields that are kept.

    A dev or test that is not given is split off: a share `held_out` of train each, by a hash of
    the tune.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        fields: str = KEPT,
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        if "K" not in fields:
            raise ValueError(f"fields = {fields!r} must have K: a tune begins after its key")
        self.fields = fields
        self.shares = shares(self.paths, held_out)
        for paths in self.paths.values():
            for path in paths:
                check_file(path)

    def describe(self) -> str:
        each = [f"{split} {named(paths)}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"tunes: {', '.join(each)}; licence as you know it"

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        for path in paths:
            for place, found in tunes(path):
                yield place, {"text": "\n".join(kept(found, self.fields, place))}


def tunes(path: Path | str) -> Iterator[tuple[str, list[str]]]:
    """The lines of each tune from `X:` on, and where that is; what stands before is passed over."""
    place, tune = "", list[str]()
    for number, line in enumerate(lines(path), 1):
        if line.startswith("X:"):
            if place:
                yield place, tune
            place, tune = f"{shown(path)}:{number}", [line]
        elif place:
            tune.append(line)
        elif line.startswith("K:"):
            raise ValueError(f"{shown(path)}:{number}: a key, but no X: before; begin tunes so")
    if not place:
        raise ValueError(f"{shown(path)}: no tune in it; each begins with a line X:1")
    yield place, tune


def kept(tune: Sequence[str], fields: str, place: str) -> Iterator[str]:
    """The tune in one spelling, or an error if it has no key or no note."""
    header, notes = True, False
    for line in tune:
        text = line.split("%", 1)[0].strip()
        field = FIELD.fullmatch(text)
        if field is None:
            if text and header:
                raise ValueError(f"{place}: no K: before the notes of this tune; give its key")
            notes = notes or bool(text)
            if text:
                yield text
        elif field[1] in fields:
            header = header and field[1] != "K"
            yield f"{field[1]}:{field[2]}"
    if header:
        raise ValueError(f"{place}: no K: in this tune; give its key")
    if not notes:
        raise ValueError(f"{place}: no notes after the K: of this tune; take it out")


def named(paths: Sequence[Path | str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{shown(paths[0])}{more}"
