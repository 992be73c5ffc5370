"""Points in space, by their distances: made here, or from JSON lines.

    {"points": [[0.0, 1.5, 2.0], …]}                     coordinates, in angstroms
    {"distances": [[0, 3.8, null], …]}                   or distances; null: nobody knows
    {"sequence": "MKV", …}                               with residues, if there are any

A machine is shown some of the distances, and has to tell the others. A distance is bounded by the
two other sides of every triangle. Records are {"text": one such object as JSON, "shown": a share}.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

from regard.corpora.corpus import SPLITS, Record, check_split
from regard.corpora.files import Paths
from regard.corpora.labelled import ByHash, Placed, by_split, shares
from regard.corpora.lines import check_file, parsed, parsed_lines, shown
from regard.corpora.planted import between
from regard.corpora.proteins import sequences_of

BOND = 3.8  # angstroms from one residue to the next (between their alpha carbons)
TRIES = 50  # to go on with a chain, before it may leave its ball

Distances = list[list[float | None]]


class Points:
    """`shortest` to `longest` points, drawn from a cube of 12 angstroms, or of a folded chain.

    A chain goes on 3.8 angstroms at a time, in a ball that is as large as proteins of its length
    are, and not nearer than that to what was there. The n-th of a split depends on the settings and
    n alone.
    """

    splits = SPLITS

    def __init__(
        self,
        size: int = 20_000,
        *,
        seed: int = 0,
        held_out: int = 500,
        shape: Literal["cloud", "chain"] = "cloud",
        shortest: int = 12,
        longest: int = 12,
        shown: float = 0.35,
    ) -> None:
        for name, number in {"size": size, "held_out": held_out}.items():
            if number < 1:
                raise ValueError(f"{name} must be at least 1, not {number}")
        if not 3 <= shortest <= longest:
            raise ValueError(f"shortest must be from 3 to longest ({longest}), not {shortest}")
        check_shown(shown)
        self.size, self.seed, self.held_out, self.shape = size, seed, held_out, shape
        self.shortest, self.longest, self.shown = shortest, longest, shown

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        for number in range(self.size if split == "train" else self.held_out):
            yield self.cloud(split, number)

    def cloud(self, split: str, number: int) -> Record:
        """The n-th set of points, without those before it."""
        chance = Random(f"regard points {self.seed} {split} {number}")
        many = between(chance, self.shortest, self.longest)
        if self.shape == "cloud":
            points = [[12 * chance.random() for _ in range(3)] for _ in range(many)]
        else:
            points = chain(chance, many)
        rounded = [[round(x, 2) for x in point] for point in points]
        return {"text": json.dumps({"points": rounded}), "shown": self.shown}

    def describe(self) -> str:
        many = f"{self.size:,} of {self.shortest} to {self.longest} points ({self.shape})"
        return f"points: {many}, {self.shown:.0%} of the distances shown; made here"


def chain(chance: Random, many: int) -> list[list[float]]:
    radius = 2.2 * many**0.38 * 1.5  # of gyration, by Skolnick et al. 1997; times what a ball needs
    found = [[0.0, 0.0, 0.0]]
    while len(found) < many:
        steps = (stepped(chance, found[-1]) for _ in range(TRIES))
        fit = (
            step
            for step in steps
            if math.hypot(*step) <= radius
            and min(math.dist(step, point) for point in found) >= BOND - 1e-9
        )
        found.append(next(fit, None) or stepped(chance, found[-1]))
    return found


def stepped(chance: Random, point: Sequence[float]) -> list[float]:
    """A bond away, in any direction."""
    way = [chance.gauss(0, 1) for _ in range(3)]
    scale = BOND / (math.hypot(*way) or 1.0)
    return [x + scale * w for x, w in zip(point, way, strict=True)]


class DistanceFiles(ByHash):
    """A corpus in JSON lines; a dev or test that is not given is held out of train, by a hash."""

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        shown: float = 0.35,
        held_out: float = 0.1,
    ) -> None:
        check_shown(shown)
        self.paths, self.shown = by_split(train, dev, test), shown
        self.shares = shares(self.paths, held_out)
        for path in (path for paths in self.paths.values() for path in paths):
            check_file(path)

    def describe(self) -> str:
        each = [f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"distances: {', '.join(each)}; licence as you know it"

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        for path in paths:
            for place, found in parsed_lines(path):
                letters, table = checked(found, place)
                whole: dict[str, Any] = {"distances": table}
                if letters is not None:
                    whole = {"sequence": letters, **whole}
                yield place, {"text": json.dumps(whole), "shown": self.shown}


def distances_of(text: str, place: str) -> tuple[str | None, Distances]:
    """The residues, if there are any, and all distances, of an object as JSON."""
    return checked(parsed(text, place), place)


def checked(found: Any, place: str) -> tuple[str | None, Distances]:
    """Distances as a table that is as long as it is wide, or an error that says what is wrong."""
    if not isinstance(found, dict) or ("points" in found) == ("distances" in found):
        raise ValueError(f"{place}: expected an object with either points or distances")
    if "points" in found:
        table = between_points(found["points"], place)
    else:
        table = symmetric(found["distances"], place)
    if "sequence" not in found:
        return None, table
    rows = sequences_of(str(found["sequence"]), place)
    if len(rows) != 1 or len(rows[0]) != len(table):
        raise ValueError(f"{place}: {len(rows[0])} residues for {len(table)} points")
    return rows[0], table


def between_points(points: Any, place: str) -> Distances:
    if not (isinstance(points, list) and len(points) > 1):
        raise ValueError(f"{place}: 'points' must be a list of two or more, as [[0, 1.5, 2], …]")
    for number, point in enumerate(points, 1):
        if not (isinstance(point, list) and len(point) == 3 and all(map(is_number, point))):
            raise ValueError(f"{place}: point {number} must be three numbers, not {point!r}")
    return [[round(math.dist(one, other), 4) for other in points] for one in points]


def symmetric(table: Any, place: str) -> Distances:
    if not (isinstance(table, list) and len(table) > 1):
        raise ValueError(f"{place}: 'distances' must be a table, as [[0, 3.8], [3.8, 0]]")
    for number, row in enumerate(table, 1):
        if not (isinstance(row, list) and len(row) == len(table)):
            raise ValueError(f"{place}: row {number} must have {len(table)} distances")
        for column, one in enumerate(row, 1):
            if one is not None and not (is_number(one) and one >= 0):
                raise ValueError(
                    f"{place}: row {number}, column {column}: {one!r} is no distance; write null "
                    "where it is not known"
                )
            other = table[column - 1][number - 1] if column < number else one
            if one != other:
                raise ValueError(f"{place}: row {number}, column {column}: {one}, there {other}")
    return [
        [0.0 if i == j else None if one is None else float(one) for j, one in enumerate(row)]
        for i, row in enumerate(table)
    ]


def is_number(one: Any) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one)


def check_shown(shown: float) -> None:
    if not 0 <= shown < 1:
        raise ValueError(f"shown must be at least 0 and less than 1, not {shown}")
