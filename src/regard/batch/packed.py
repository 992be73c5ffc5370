"""Many pairs in little room: two or four bytes for an id, where a list takes up to forty."""

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

from regard.batch.pair import Pair

SHORT = 2**16


class Packed(Sequence[Pair]):
    """A sequence of pairs whose ids lie in one array, source after target after source."""

    def __init__(self, pairs: Iterable[Pair] = ()):
        self.ids = array("H")  # made wider when a larger id comes
        self.ends = array("q", [0])  # of each side
        self.numbers = array("q")
        for pair in pairs:
            self.append(pair)

    def append(self, pair: Pair) -> None:
        for side in (pair.source, pair.target):
            if self.ids.typecode == "H" and max(side, default=0) >= SHORT:
                self.ids = array("i", self.ids)
            self.ids.extend(side)
            self.ends.append(len(self.ids))
        self.numbers.append(pair.number)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | Sequence[Pair]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = self.numbers[index]  # an IndexError, if there is none
        at = 2 * (index % len(self))
        start, middle, end = self.ends[at : at + 3]
        return Pair(number, self.ids[start:middle], self.ids[middle:end])
