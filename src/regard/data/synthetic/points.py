"""Points in space and their distances: synthetic, or from JSON lines.

    {"points": [[0.0, 1.5, 2.0], …]}                     coordinates, in angstroms
    {"distances": [[0, 3.8, null], …]}                   or distances; null: unknown
    {"sequence": "MKV", …}                               and residues, optionally

A model sees some of the distances and predicts the others. A distance is bounded by the two other
sides of every triangle. Records are {"text": such an object as JSON, "visible_fraction": the share
of distances that the model sees}.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Literal, TypeGuard

from regard.data.corpus import SPLITS, Record, check_split
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
)
from regard.data.formats.lines import check_file, parse_json_line, parse_json_lines
from regard.data.formats.proteins import parse_sequences
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths
from regard.data.synthetic.planted import random_between
from regard.errors import InputError
from regard.files import JsonObject

BOND_LENGTH = 3.8  # angstroms between the alpha carbons of neighboring residues
MAX_STEP_TRIES = 50  # random steps of a chain before it may leave its ball

Distances = list[list[float | None]]


class Points:
    """Sets of `min_points` to `max_points` points: in a cube of 12 angstroms, or a folded chain.

    A chain is a random walk with steps of 3.8 angstroms, in a ball as large as a protein of its
    length. Its points keep at least that distance from each other. A record depends on the
    settings and its index alone.
    """

    splits = SPLITS

    def __init__(
        self,
        size: int = 20_000,
        *,
        seed: int = 0,
        held_out: int = 500,
        shape: Literal["cloud", "chain"] = "cloud",
        min_points: int = 12,
        max_points: int = 12,
        visible_fraction: float = 0.35,
    ) -> None:
        for name, value in {"size": size, "held_out": held_out}.items():
            if value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        if not 3 <= min_points <= max_points:
            raise InputError(
                f"min_points must be from 3 to max_points ({max_points}), not {min_points}"
            )
        check_visible_fraction(visible_fraction)
        self.size, self.seed, self.held_out, self.shape = size, seed, held_out, shape
        self.min_points, self.max_points, self.visible_fraction = (
            min_points,
            max_points,
            visible_fraction,
        )

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        for index in range(self.size if split == "train" else self.held_out):
            yield self.example(split, index)

    def example(self, split: str, index: int) -> Record:
        """Return set `index` of a split, without drawing those before it."""
        rng = Random(f"regard points {self.seed} {split} {index}")
        count = random_between(rng, self.min_points, self.max_points)
        if self.shape == "cloud":
            points = [[12 * rng.random() for _ in range(3)] for _ in range(count)]
        else:
            points = draw_chain(rng, count)
        rounded = [[round(x, 2) for x in point] for point in points]
        return {"text": json.dumps({"points": rounded}), "visible_fraction": self.visible_fraction}

    def describe(self) -> str:
        sizes = f"{self.size:,} of {self.min_points} to {self.max_points} points ({self.shape})"
        return f"points: {sizes}, {self.visible_fraction:.0%} of the distances shown; synthetic"


def draw_chain(rng: Random, count: int) -> list[list[float]]:
    # Radius of gyration by Skolnick et al. 1997, times 1.5 for the ball around the chain
    radius = 2.2 * count**0.38 * 1.5
    points = [[0.0, 0.0, 0.0]]
    while len(points) < count:
        steps = (random_step(rng, points[-1]) for _ in range(MAX_STEP_TRIES))
        valid_steps = (
            step
            for step in steps
            if math.hypot(*step) <= radius
            and min(math.dist(step, point) for point in points) >= BOND_LENGTH - 1e-9
        )
        points.append(next(valid_steps, None) or random_step(rng, points[-1]))
    return points


def random_step(rng: Random, point: Sequence[float]) -> list[float]:
    """Return a point one bond length away, in a random direction."""
    direction = [rng.gauss(0, 1) for _ in range(3)]
    scale = BOND_LENGTH / (math.hypot(*direction) or 1.0)
    return [x + scale * w for x, w in zip(point, direction, strict=True)]


class DistanceFiles(HashSplitFiles):
    """A corpus in JSON lines; a missing dev or test is held out of train by a hash."""

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        visible_fraction: float = 0.35,
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        check_visible_fraction(visible_fraction)
        self.paths, self.visible_fraction = paths_by_split(train, dev, test), visible_fraction
        self.shares = held_out_shares(self.paths, held_out)
        for path in (path for paths in self.paths.values() for path in paths):
            check_file(path)

    def describe(self) -> str:
        return f"distances: {self.describe_files()}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        for path in paths:
            for location, data in parse_json_lines(path, skipped=self.skipped):
                with self.skipped.row(location):
                    yield location, self.record(data, location)

    def record(self, data: object, location: str) -> Record:
        """Return the record of one object."""
        letters, table = to_distances(data, location)
        output: JsonObject = {"distances": table}
        if letters is not None:
            output = {"sequence": letters, **output}
        return {"text": json.dumps(output), "visible_fraction": self.visible_fraction}


def parse_distances(text: str, location: str) -> tuple[str | None, Distances]:
    """Parse a JSON object; return its residues, if any, and its table of distances."""
    return to_distances(parse_json_line(text, location), location)


def to_distances(data: object, location: str) -> tuple[str | None, Distances]:
    """Return the residues, if any, and a square table of distances; errors name `location`."""
    if not isinstance(data, dict) or ("points" in data) == ("distances" in data):
        raise InputError(f"{location}: expected an object with either points or distances")
    if "points" in data:
        table = pairwise_distances(data["points"], location)
    else:
        table = to_symmetric_table(data["distances"], location)
    if "sequence" not in data:
        return None, table
    rows = parse_sequences(str(data["sequence"]), location)
    if len(rows) != 1 or len(rows[0]) != len(table):
        raise InputError(
            f"{location}: {len(rows[0])} residues, but {len(table)} points; give one a point"
        )
    return rows[0], table


def pairwise_distances(points: object, location: str) -> Distances:
    if not (isinstance(points, list) and len(points) > 1):
        raise InputError(
            f"{location}: 'points' must be a list of at least two, as [[0, 1.5, 2], …]"
        )
    for number, point in enumerate(points, 1):
        if not (isinstance(point, list) and len(point) == 3 and all(map(is_number, point))):
            raise InputError(f"{location}: point {number} must be three numbers, not {point!r}")
    return [[round(math.dist(first, second), 4) for second in points] for first in points]


def to_symmetric_table(table: object, location: str) -> Distances:
    if not (isinstance(table, list) and len(table) > 1):
        raise InputError(f"{location}: 'distances' must be a table, as [[0, 3.8], [3.8, 0]]")
    for number, row in enumerate(table, 1):
        if not (isinstance(row, list) and len(row) == len(table)):
            raise InputError(f"{location}: row {number} must have {len(table)} distances")
        for column, distance in enumerate(row, 1):
            if distance is not None and not (is_number(distance) and distance >= 0):
                raise InputError(
                    f"{location}: row {number}, column {column}: {distance!r} is no distance; "
                    "write null for unknown"
                )
            mirrored = table[column - 1][number - 1] if column < number else distance
            if distance != mirrored:
                raise InputError(
                    f"{location}: row {number}, column {column} is {distance}, but row {column}, "
                    f"column {number} is {mirrored}; make the table symmetric"
                )
    return [
        [
            0.0 if i == j else None if distance is None else float(distance)
            for j, distance in enumerate(row)
        ]
        for i, row in enumerate(table)
    ]


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def check_visible_fraction(visible_fraction: float) -> None:
    if not 0 <= visible_fraction < 1:
        raise InputError(
            f"visible_fraction must be at least 0 and less than 1, not {visible_fraction}"
        )
