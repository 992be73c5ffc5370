"""Counts of any data in bounded memory: texts by their hashes, tokens by their number."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from regard.batching.memory_forecast import BatchShape
from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.data.statistics import SplitStatistics, quantile
from regard.files import JsonObject
from regard.text.special import UNKNOWN

MAX_TOKENIZED_RECORDS = 200_000  # records of a split that are cut into tokens, at most
RECORDS_PER_CHUNK = 10_000

Progress = Callable[[str, int | None, Iterator[Record]], Iterator[Record]]
"""(what is done, number of records if known, records) -> the same records, with a progress bar."""
MemoryProbe = Callable[[Settings, dict[str, int], BatchShape], Any]
"""(settings, vocabulary sizes, the largest batch) -> the memory that training takes."""


@dataclass
class TokenStatistics:
    """Lengths of one side of a split in tokens, and what of it the vocabulary does not know."""

    lengths: Counter[int] = field(default_factory=Counter)
    unknown: int = 0

    def add(self, ids: Sequence[int], unknown: int | None = UNKNOWN) -> None:
        self.lengths[len(ids)] += 1
        self.unknown += 0 if unknown is None else ids.count(unknown)

    @property
    def tokens(self) -> int:
        return sum(length * count for length, count in self.lengths.items())

    def as_dict(self) -> JsonObject:
        tokens = self.tokens
        return {
            "median": quantile(self.lengths, 0.5),
            "most": quantile(self.lengths, 0.95),
            "longest": max(self.lengths, default=0),
            "unknown": self.unknown / tokens if tokens else 0.0,
        }


def count_records(
    corpus: Corpus,
    progress: Progress,
    to_pair: Callable[[str, Record], Record] = lambda _, record: record,
) -> dict[str, SplitStatistics]:
    """Dev and test first: then the training data, of any size, can be held against them.

    `seen` makes of a split's record one with a source and a target.
    """
    statistics_by_split: dict[str, SplitStatistics] = {}
    for split in sorted(corpus.splits, key=lambda split: split == "train"):
        held_out = (
            [earlier.hashes for earlier in statistics_by_split.values()] if split == "train" else []
        )
        statistics_by_split[split] = split_statistics = SplitStatistics(held_out)
        for record in progress(f"reading {split}", None, corpus.read(split)):
            split_statistics.add(to_pair(split, record))
    return statistics_by_split


def sampling_stride(total: int) -> int:
    """One record in so many is cut into tokens."""
    return -(-total // MAX_TOKENIZED_RECORDS) or 1


def sampled_chunks(records: Iterable[Record], stride: int) -> Iterator[list[Record]]:
    """Every `step`-th of the records, many at a time."""
    chosen = islice(records, 0, None, stride)
    while chunk := list(islice(chosen, RECORDS_PER_CHUNK)):
        yield chunk
