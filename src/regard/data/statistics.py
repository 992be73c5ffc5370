"""Counts over a corpus in bounded memory: hashes of texts are kept, never the texts."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from unicodedata import is_normalized

from regard.data.corpus import Record

MAX_REMEMBERED_PAIRS = 500_000  # hashes kept for a split; beyond it, one source in 2, 4, 8 …
LOW_BITS = 2**32 - 1
REPLACEMENT_CHARACTER = "\ufffd"
CONTROL_CHARACTERS = re.compile(  # without tab and line feed, the separators of TSV
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
MAX_RATIO_FACTOR = 3.0  # relative to the median ratio of lengths
MIN_RATIO_CHARACTERS = 20  # on the longer side: ratios of short texts vary too much
BINS_PER_DOUBLING = 20  # bins of log2(ratio)


class Duplicates:
    """Count repeated pairs, and sources with several targets.

    With more than `max_pairs` pairs, half of the sources are dropped by their hash. What remains
    is complete for one source in `sampling_stride`.
    """

    def __init__(self, max_pairs: int = MAX_REMEMBERED_PAIRS):
        self.max_pairs, self.sampling_stride = max_pairs, 1
        self.first_targets: dict[int, int] = {}  # source -> its first target
        self.pairs: set[int] = set()
        self.repeats: Counter[int] = Counter()  # by source
        self.ambiguous_sources: set[int] = set()

    def add(self, source: int, target: int) -> None:
        if source % self.sampling_stride:
            return
        pair = pair_hash(source, target)
        if pair in self.pairs:
            self.repeats[source] += 1
            return
        self.pairs.add(pair)
        if self.first_targets.setdefault(source, target) != target:
            self.ambiguous_sources.add(source)
        if len(self.pairs) > self.max_pairs:
            self.shrink()

    def shrink(self) -> None:
        while len(self.pairs) > self.max_pairs and self.sampling_stride < LOW_BITS:
            self.sampling_stride *= 2
            self.pairs = {pair for pair in self.pairs if not pair % self.sampling_stride}
        for table in (self.first_targets, self.repeats):
            for source in [source for source in table if source % self.sampling_stride]:
                del table[source]
        self.ambiguous_sources = {
            source for source in self.ambiguous_sources if not source % self.sampling_stride
        }

    @property
    def repeated_count(self) -> int:
        """Return the number of repeated pairs; an estimate if sources were dropped."""
        return self.sampling_stride * sum(self.repeats.values())

    @property
    def ambiguous_count(self) -> int:
        """Return the number of sources with several targets; an estimate, as `repeated_count`."""
        return self.sampling_stride * len(self.ambiguous_sources)


class HeldOutHashes:
    """Hashes of a held-out split, to find its pairs and sources in training data of any size."""

    def __init__(self, max_pairs: int = MAX_REMEMBERED_PAIRS):
        self.max_pairs, self.pair_count = max_pairs, 0
        self.pairs: Counter[int] = Counter()
        self.sources: Counter[int] = Counter()
        self.leaked_pair_hashes: set[int] = set()
        self.leaked_source_hashes: set[int] = set()

    def add(self, source: int, target: int) -> None:
        if self.pair_count < self.max_pairs:
            self.pair_count += 1
            self.pairs[pair_hash(source, target)] += 1
            self.sources[source] += 1

    def add_training_pair(self, source: int, target: int) -> None:
        """Compare a pair of the training data with the held-out split."""
        if source in self.sources:
            self.leaked_source_hashes.add(source)
            if (pair := pair_hash(source, target)) in self.pairs:
                self.leaked_pair_hashes.add(pair)

    @property
    def leaked_pairs(self) -> int:
        return sum(self.pairs[pair] for pair in self.leaked_pair_hashes)

    @property
    def leaked_sources(self) -> int:
        return sum(self.sources[source] for source in self.leaked_source_hashes)


@dataclass
class SplitStatistics:
    """Counts over one split, updated record by record.

    `held_out` are the splits that must not share pairs with this one.
    """

    held_out: list[HeldOutHashes] = field(default_factory=list)
    pairs: int = 0
    empty_source: int = 0
    empty_target: int = 0
    identical: int = 0
    replacement_characters: int = 0  # records with U+FFFD: the text was once decoded wrongly
    control_characters: int = 0
    not_nfc: int = 0
    first_indices: dict[str, int] = field(default_factory=dict)  # of each anomaly, from 0
    duplicates: Duplicates = field(default_factory=Duplicates)
    hashes: HeldOutHashes = field(default_factory=HeldOutHashes)
    ratio_bins: Counter[int] = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        source, target = record["source"], record["target"]
        for name in self.text_anomalies(source, target):
            setattr(self, name, getattr(self, name) + 1)
            self.first_indices.setdefault(name, self.pairs)
        self.pairs += 1
        if not source.strip() or not target.strip():
            return
        self.ratio_bins[length_ratio_bin(source, target)] += 1
        source_hash, target_hash = text_hash(source), text_hash(target)
        self.duplicates.add(source_hash, target_hash)
        self.hashes.add(source_hash, target_hash)
        for held_out in self.held_out:
            held_out.add_training_pair(source_hash, target_hash)

    def text_anomalies(self, source: str, target: str) -> Iterator[str]:
        """Yield the anomalies of a pair, as names of the fields that count them."""
        if not source.strip():
            yield "empty_source"
        if not target.strip():
            yield "empty_target"
        elif source == target:
            yield "identical"
        joined = f"{source}\t{target}"
        if CONTROL_CHARACTERS.search(joined):
            yield "control_characters"
        if not joined.isascii():
            if REPLACEMENT_CHARACTER in joined:
                yield "replacement_characters"
            if not is_normalized("NFC", joined):
                yield "not_nfc"

    def median_ratio_bin(self) -> int:
        return quantile(self.ratio_bins, 0.5)


def text_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def pair_hash(source: int, target: int) -> int:
    """Hash a pair; the lower half is that of the source, so that both are dropped together."""
    return (source & LOW_BITS) | ((source ^ target * 0x9E3779B97F4A7C15) & (LOW_BITS << 32))


def length_ratio_bin(source: str, target: str) -> int:
    """Return the bin of log2(target / source), of the lengths in characters."""
    return round(BINS_PER_DOUBLING * math.log2((len(target) + 1) / (len(source) + 1)))


def has_unusual_ratio(source: str, target: str, median_bin: int) -> bool:
    """Return whether the ratio of lengths is MAX_RATIO_FACTOR times the median or more.

    Such a pair is rarely a translation.
    """
    if (
        max(len(source), len(target)) < MIN_RATIO_CHARACTERS
        or not source.strip()
        or not target.strip()
    ):
        return False
    return abs(length_ratio_bin(source, target) - median_bin) > BINS_PER_DOUBLING * math.log2(
        MAX_RATIO_FACTOR
    )


def quantile(counts: Counter[int], share: float) -> int:
    """Return the smallest value that is not below this share of all counts."""
    remaining = share * counts.total()
    for value in sorted(counts):
        remaining -= counts[value]
        if remaining <= 1e-9:
            return value
    return 0
