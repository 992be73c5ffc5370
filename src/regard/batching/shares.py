"""Split a batch over the processes of a training.

Every process draws the same batches in the same order, and keeps its share of each: no process
distributes data, and the batches do not depend on the number of processes.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from regard.errors import InputError


@runtime_checkable
class SharedSource(Protocol):
    """A source of batches that several processes can share.

    A batch with fewer examples than processes leaves some without a share. They get a copy of an
    example, so that all run the same operations; `has_share` is then False, and it does not count.
    """

    has_share: bool

    def take_share(self, rank: int, ranks: int) -> None:
        """Return only the share of this rank from now on."""
        ...


def check_rank(rank: int, ranks: int) -> None:
    if not 0 <= rank < ranks:
        raise InputError(f"rank must be from 0 to {ranks - 1}, not {rank}")


def balanced_shares(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Return the positions of the items of each share; the sums of sizes are about equal.

    The largest item goes first, each to the smallest share (Graham 1969): two sums differ by at
    most the largest size. Positions of a share are in ascending order.
    """
    shares: list[list[int]] = [[] for _ in range(count)]
    sums = [0] * count
    for position in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        smallest = min(range(count), key=sums.__getitem__)
        shares[smallest].append(position)
        sums[smallest] += max(1, sizes[position])
    return [sorted(share) for share in shares]


def row_share(rows: int, rank: int, ranks: int) -> slice:
    """Return the rows of a rank; they are consecutive, and those of all ranks are all rows."""
    return slice(rank * rows // ranks, (rank + 1) * rows // ranks)
