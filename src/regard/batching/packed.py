"""Many examples in little memory: two or four bytes for an id, where a list takes up to forty."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Generic, overload

from regard.batching.example import SizedT

SHORT_ID_LIMIT = 2**16


class PackedExamples(Sequence[SizedT], Generic[SizedT]):
    """Examples of one class whose ids are in one array, field after field.

    Each field after `index` holds ids, or one number that is not negative.
    """

    def __init__(self, examples: Iterable[SizedT] = ()):
        self.ids = array("H")  # widened to "i" by the first id above the limit
        self.ends = array("q", [0])  # the end of each field of each example
        self.indices = array("q")
        self.build_example: Callable[..., SizedT] | None = None
        self.field_names: tuple[str, ...] = ()
        self.is_number: tuple[bool, ...] = ()  # by field
        for example in examples:
            self.append(example)

    def append(self, example: SizedT) -> None:
        if self.build_example is None:
            self.inspect_fields(example)
        for name, is_number in zip(self.field_names, self.is_number, strict=True):
            value = getattr(example, name)
            ids = (value,) if is_number else value
            if self.ids.typecode == "H" and max(ids, default=0) >= SHORT_ID_LIMIT:
                self.ids = array("i", self.ids)
            self.ids.extend(ids)
            self.ends.append(len(self.ids))
        self.indices.append(example.index)

    def inspect_fields(self, example: SizedT) -> None:
        """Take over the class of the first example, and which of its fields are numbers."""
        if not is_dataclass(example):
            raise TypeError(f"an example must be a dataclass, not {type(example).__name__}")
        names = [field.name for field in fields(example)]
        self.field_names = tuple(name for name in names if name != "index")
        self.is_number = tuple(isinstance(getattr(example, n), int) for n in self.field_names)
        self.build_example = type(example)

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> SizedT: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SizedT]: ...
    def __getitem__(self, index: int | slice) -> SizedT | Sequence[SizedT]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        corpus_index = self.indices[index]  # raises an IndexError outside of the examples
        if self.build_example is None:
            raise IndexError(index)
        first_end = len(self.field_names) * (index % len(self))
        ends = self.ends[first_end : first_end + len(self.field_names) + 1]
        values = [
            self.ids[start] if is_number else self.ids[start:end]
            for start, end, is_number in zip(ends, ends[1:], self.is_number, strict=False)
        ]
        return self.build_example(corpus_index, *values)
