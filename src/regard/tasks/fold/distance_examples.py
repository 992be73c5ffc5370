"""Examples of the prediction of distances.

r: points
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.corpus import Record
from regard.data.formats.proteins import UNKNOWN_RESIDUE
from regard.data.synthetic.points import Distances, parse_distances
from regard.tasks.fold.model import residue_ids

UNKNOWN_DISTANCE = -1.0  # a distance that is not in the data


@dataclass(frozen=True)
class DistanceExample:
    """A table of distances with the residue of each point.

    The model sees a share `visible_fraction` of the known distances, or all of them if it is None.
    """

    index: int
    distances: Float[np.ndarray, "r r"]
    residues: Sequence[int]
    visible_fraction: float | None

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.distances), len(self.residues)


def build_example(index: int, record: Record) -> DistanceExample:
    """Return the example of a record; lines of input have no `visible_fraction`."""
    letters, table = parse_distances(record["text"], f"record {index + 1}")
    residues = residue_ids(letters or UNKNOWN_RESIDUE * len(table))
    return DistanceExample(index, distance_table(table), residues, record.get("visible_fraction"))


def distance_table(table: Distances) -> Float[np.ndarray, "r r"]:
    """Return distances as an array, with `UNKNOWN_DISTANCE` for each null."""
    rows = [[UNKNOWN_DISTANCE if d is None else d for d in row] for row in table]
    return np.array(rows, np.float32)


def reproducible_draws(table: Float[np.ndarray, "r r"]) -> Float[Tensor, "r r"]:
    """Return numbers from 0 to 1 that depend on the distances alone."""
    seed = int.from_bytes(blake2b(table.tobytes(), digest_size=7).digest())
    return torch.rand(2 * [len(table)], generator=torch.Generator().manual_seed(seed))
