"""What corpora that are made here have in common: records that depend on their number alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from regard.data.corpus import SPLITS, Record, check_split


class SyntheticCorpus(ABC):
    """`size` records to train on and `held_out` each in dev and test, made one at a time."""

    splits = SPLITS

    def __init__(self, size: int, seed: int, held_out: int):
        for name, count in {"size": size, "held_out": held_out}.items():
            if count < 1:
                raise ValueError(f"{name} must be at least 1, not {count}")
        self.size, self.seed, self.held_out = size, seed, held_out

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        for index in range(self.size if split == "train" else self.held_out):
            yield self.example(split, index)

    @abstractmethod
    def example(self, split: str, index: int) -> Record:
        """The n-th record of a split, without those before it."""

    @abstractmethod
    def describe(self) -> str:
        """One line: what is made."""
