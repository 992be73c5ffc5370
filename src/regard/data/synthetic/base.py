"""The base class of synthetic corpora, whose records depend on their index alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from regard.data.corpus import SPLITS, Record, check_split
from regard.errors import InputError


class SyntheticCorpus(ABC):
    """A corpus of `size` training records and `held_out` each in dev and test, drawn on demand."""

    splits = SPLITS

    def __init__(self, size: int, seed: int, held_out: int):
        for name, count in {"size": size, "held_out": held_out}.items():
            if count < 1:
                raise InputError(f"{name} must be at least 1, not {count}")
        self.size, self.seed, self.held_out = size, seed, held_out

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        for index in range(self.size if split == "train" else self.held_out):
            yield self.example(split, index)

    @abstractmethod
    def example(self, split: str, index: int) -> Record:
        """Return record `index` of a split, without drawing the records before it."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the records in one line."""
