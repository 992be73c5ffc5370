"""Many pairs in little room: two or four bytes for an id, where a list takes up to forty."""

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

from regard.batching.example import Example

SHORT_ID_LIMIT = 2**16


class PackedExamples(Sequence[Example]):
    """A sequence of pairs whose ids lie in one array, source after target after source."""

    def __init__(self, examples: Iterable[Example] = ()):
        self.ids = array("H")  # made wider when a larger id comes
        self.ends = array("q", [0])  # of each side
        self.indices = array("q")
        for example in examples:
            self.append(example)

    def append(self, example: Example) -> None:
        for side in (example.source, example.target):
            if self.ids.typecode == "H" and max(side, default=0) >= SHORT_ID_LIMIT:
                self.ids = array("i", self.ids)
            self.ids.extend(side)
            self.ends.append(len(self.ids))
        self.indices.append(example.index)

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        corpus_index = self.indices[index]  # an IndexError, if there is none
        offset = 2 * (index % len(self))
        start, middle, end = self.ends[offset : offset + 3]
        return Example(corpus_index, self.ids[start:middle], self.ids[middle:end])
