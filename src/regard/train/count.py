"""What is counted of any data, in bounded memory: texts by their hashes, tokens by their number."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from regard.corpora.census import Census, quantile
from regard.corpora.corpus import Corpus, Record
from regard.text.special import UNKNOWN

TOKENISED = 200_000  # records of a split that are cut into tokens, at most
AT_ONCE = 10_000

# (what is done, of how many, records of it) -> the same records, with a bar
Shown = Callable[[str, int | None, Iterator[Record]], Iterator[Record]]


@dataclass
class Side:
    """Lengths of one side of a split in tokens, and what of it the vocabulary does not know."""

    lengths: Counter[int] = field(default_factory=Counter)
    unknown: int = 0

    def add(self, ids: Sequence[int], unknown: int | None = UNKNOWN) -> None:
        self.lengths[len(ids)] += 1
        self.unknown += 0 if unknown is None else ids.count(unknown)

    @property
    def tokens(self) -> int:
        return sum(length * count for length, count in self.lengths.items())

    def told(self) -> dict[str, Any]:
        tokens = self.tokens
        return {
            "median": quantile(self.lengths, 0.5),
            "most": quantile(self.lengths, 0.95),
            "longest": max(self.lengths, default=0),
            "unknown": self.unknown / tokens if tokens else 0.0,
        }


def count(
    corpus: Corpus, shown: Shown, seen: Callable[[str, Record], Record] = lambda _, record: record
) -> dict[str, Census]:
    """Dev and test first: then the training data, of any size, can be held against them.

    `seen` makes of a split's record one with a source and a target.
    """
    found: dict[str, Census] = {}
    for split in sorted(corpus.splits, key=lambda split: split == "train"):
        held_out = [one.own for one in found.values()] if split == "train" else []
        found[split] = census = Census(held_out)
        for record in shown(f"reading {split}", None, corpus.read(split)):
            census.add(seen(split, record))
    return found


def every(total: int) -> int:
    """One record in so many is cut into tokens."""
    return -(-total // TOKENISED) or 1


def chunks(records: Iterable[Record], step: int) -> Iterator[list[Record]]:
    """Every `step`-th of the records, many at a time."""
    chosen = islice(records, 0, None, step)
    while some := list(islice(chosen, AT_ONCE)):
        yield some
