"""Corpus: splits by name, each a stream of records that can be read again."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

from regard.errors import InputError

Record = dict[str, Any]
"""{"source": …, "target": …} for translation; other tasks have other fields."""


class CorpusRecord(dict[str, Any]):
    """A record as a corpus reads it: complete and checked, with what metrics need, such as boxes.

    A record of a user, in the format of a file, has yet to be read.
    """


SPLITS = ("train", "dev", "test")


@runtime_checkable
class Corpus(Protocol):
    """Records are read from the start each time, one by one: no split needs to fit in memory."""

    @property
    def splits(self) -> tuple[str, ...]: ...

    def read(self, split: str) -> Iterator[Record]: ...

    def describe(self) -> str:
        """One line: where from, under which license."""
        ...


@runtime_checkable
class LocatableCorpus(Protocol):
    """A corpus that knows where its records (numbered from 0) stand."""

    def location(self, split: str, index: int) -> str: ...


def location(corpus: Corpus, split: str, index: int) -> str:
    """Return the location of a record for a message: its file and line if the corpus knows them."""
    if isinstance(corpus, LocatableCorpus):
        return corpus.location(split, index)
    return f"{split}, record {index + 1}"


def check_split(split: str, splits: Iterable[str]) -> None:
    check_name("split", split, splits)


def check_name(label: str, name: str, names: Iterable[str]) -> None:
    """One of `names`, or a ValueError with the near miss."""
    names = tuple(names)
    if name not in names:
        close_matches = get_close_matches(name, names, 1)
        hint = f"; did you mean {close_matches[0]!r}?" if close_matches else ""
        raise InputError(f"{label} must be one of {', '.join(names)}, not {name!r}{hint}")
