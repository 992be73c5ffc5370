"""What a corpus is: splits by name, each a stream of records that can be read again."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

Record = dict[str, Any]
"""{"source": …, "target": …} for translation; other tasks have other fields."""

SPLITS = ("train", "dev", "test")


@runtime_checkable
class Corpus(Protocol):
    """Records are read from the start each time, one by one: no split needs to fit in memory."""

    @property
    def splits(self) -> tuple[str, ...]: ...

    def read(self, split: str) -> Iterator[Record]: ...

    def describe(self) -> str:
        """One line: where from, under which licence."""
        ...


@runtime_checkable
class Placed(Protocol):
    """A corpus that knows where its records (numbered from 0) stand."""

    def place(self, split: str, number: int) -> str: ...


def place(corpus: Corpus, split: str, number: int) -> str:
    """Where a record is, for a message: its file and line if the corpus knows them."""
    if isinstance(corpus, Placed):
        return corpus.place(split, number)
    return f"{split}, record {number + 1}"


def check_split(split: str, splits: Iterable[str]) -> None:
    check_name("split", split, splits)


def check_name(what: str, name: str, names: Iterable[str]) -> None:
    """One of `names`, or a ValueError with the near miss."""
    names = tuple(names)
    if name not in names:
        near = get_close_matches(name, names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{what} must be one of {', '.join(names)}, not {name!r}{hint}")
