"""What a corpus holds, counted in bounded memory: hashes of texts, never the texts themselves."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from unicodedata import is_normalized

from regard.corpora.corpus import Record

REMEMBERED = 500_000  # sources of a split whose hashes are kept; of more, one in 2, 4, 8 …
LOW = 2**32 - 1
REPLACED = "\ufffd"
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # in a TSV, tab and line end mean something
FAR = 3.0  # times the usual ratio of lengths
ENOUGH = 20  # characters on the longer side: short texts have any ratio
FINENESS = 20  # bins of the ratio's logarithm


class Duplicates:
    """Pairs that come again, and sources with several targets.

    When more than `most` sources are known, half of them are forgotten, by their hash: what is
    left is all that there is to say about one source in `every`.
    """

    def __init__(self, most: int = REMEMBERED):
        self.most, self.every = most, 1
        self.first: dict[int, int] = {}  # source -> its first target
        self.pairs: set[int] = set()
        self.again: Counter[int] = Counter()  # by source
        self.several: set[int] = set()

    def add(self, source: int, target: int) -> None:
        if source % self.every:
            return
        pair = paired(source, target)
        if pair in self.pairs:
            self.again[source] += 1
            return
        self.pairs.add(pair)
        if self.first.setdefault(source, target) != target:
            self.several.add(source)
        if len(self.pairs) > self.most:
            self.forget()

    def forget(self) -> None:
        while len(self.pairs) > self.most and self.every < LOW:
            self.every *= 2
            self.pairs = {pair for pair in self.pairs if not pair % self.every}
        for kept in (self.first, self.again):
            for source in [source for source in kept if source % self.every]:
                del kept[source]
        self.several = {source for source in self.several if not source % self.every}

    @property
    def repeated(self) -> int:
        """Pairs that were there before; about as many, where only some sources are known."""
        return self.every * sum(self.again.values())

    @property
    def ambiguous(self) -> int:
        """Sources with more than one target."""
        return self.every * len(self.several)


class HeldOut:
    """The hashes of a split to be compared with the training data, which may be of any size."""

    def __init__(self, most: int = REMEMBERED):
        self.most, self.compared = most, 0
        self.pairs: Counter[int] = Counter()
        self.sources: Counter[int] = Counter()
        self.known_pairs: set[int] = set()
        self.known_sources: set[int] = set()

    def add(self, source: int, target: int) -> None:
        if self.compared < self.most:
            self.compared += 1
            self.pairs[paired(source, target)] += 1
            self.sources[source] += 1

    def meet(self, source: int, target: int) -> None:
        """A pair of the training data."""
        if source in self.sources:
            self.known_sources.add(source)
            if (pair := paired(source, target)) in self.pairs:
                self.known_pairs.add(pair)

    @property
    def leaked_pairs(self) -> int:
        return sum(self.pairs[pair] for pair in self.known_pairs)

    @property
    def leaked_sources(self) -> int:
        return sum(self.sources[source] for source in self.known_sources)


@dataclass
class Census:
    """One split, record by record; `held_out` are those that this one must not know."""

    held_out: list[HeldOut] = field(default_factory=list)
    pairs: int = 0
    empty_source: int = 0
    empty_target: int = 0
    identical: int = 0
    replacement_characters: int = 0  # with U+FFFD: the text was decoded wrongly once
    control_characters: int = 0
    not_nfc: int = 0
    first: dict[str, int] = field(default_factory=dict)  # record numbers, from 0
    duplicates: Duplicates = field(default_factory=Duplicates)
    own: HeldOut = field(default_factory=HeldOut)
    ratios: Counter[int] = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        source, target = record["source"], record["target"]
        for name in self.odd(source, target):
            setattr(self, name, getattr(self, name) + 1)
            self.first.setdefault(name, self.pairs)
        self.pairs += 1
        if not source.strip() or not target.strip():
            return
        self.ratios[ratio(source, target)] += 1
        one, other = hashed(source), hashed(target)
        self.duplicates.add(one, other)
        self.own.add(one, other)
        for held_out in self.held_out:
            held_out.meet(one, other)

    def odd(self, source: str, target: str) -> Iterator[str]:
        """What is odd about a pair, by the name of the field that counts it."""
        if not source.strip():
            yield "empty_source"
        if not target.strip():
            yield "empty_target"
        elif source == target:
            yield "identical"
        both = f"{source}\t{target}"
        if CONTROLS.search(both):
            yield "control_characters"
        if not both.isascii():
            if REPLACED in both:
                yield "replacement_characters"
            if not is_normalized("NFC", both):
                yield "not_nfc"

    def usual_ratio(self) -> int:
        """The median of the ratio's bins."""
        return quantile(self.ratios, 0.5)


def hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def paired(source: int, target: int) -> int:
    """A hash of both; its lower half is the source's, so that they are forgotten together."""
    return (source & LOW) | ((source ^ target * 0x9E3779B97F4A7C15) & (LOW << 32))


def ratio(source: str, target: str) -> int:
    """log2(target / source) in characters, in bins."""
    return round(FINENESS * math.log2((len(target) + 1) / (len(source) + 1)))


def is_far(source: str, target: str, usual: int) -> bool:
    """One side is `FAR` times as long as its like usually are: rarely a translation."""
    if max(len(source), len(target)) < ENOUGH or not source.strip() or not target.strip():
        return False
    return abs(ratio(source, target) - usual) > FINENESS * math.log2(FAR)


def quantile(counts: Counter[int], share: float) -> int:
    """The least number that is not below this share of all."""
    left = share * counts.total()
    for number in sorted(counts):
        left -= counts[number]
        if left <= 1e-9:
            return number
    return 0
