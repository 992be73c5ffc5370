"""Mix several corpora by weight, and shuffle a stream in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

from regard.data.corpus import SPLITS, Corpus, Record, check_split
from regard.errors import InputError

T = TypeVar("T")


class MixedCorpus:
    """Records of several corpora, drawn with probabilities in proportion to their weights.

    An epoch ends when every corpus has been read to its end once; until then, shorter corpora
    start again. The dev and test splits of all corpora are concatenated.
    """

    def __init__(
        self, corpora: Sequence[Corpus], weights: Sequence[int | float], *, seed: int = 0
    ) -> None:
        if not corpora:
            raise InputError("corpora are empty; a mix needs at least one")
        if len(corpora) != len(weights):
            raise InputError(f"{len(weights)} weights for {len(corpora)} corpora; give one each")
        for weight in weights:
            if not 0 < weight < float("inf"):
                raise InputError(f"weights must be positive, not {weight}")
        for corpus in corpora:
            check_split("train", corpus.splits)
        self.corpora, self.weights, self.seed = tuple(corpora), tuple(weights), seed

    @property
    def splits(self) -> tuple[str, ...]:
        available = {split for corpus in self.corpora for split in corpus.splits}
        return tuple(split for split in SPLITS if split in available)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        if split == "train":
            yield from self._draw_records()
            return
        for corpus in self.corpora:
            if split in corpus.splits:
                yield from corpus.read(split)

    def _draw_records(self) -> Iterator[Record]:
        rng = Random(f"regard mix {self.seed}")
        streams = [corpus.read("train") for corpus in self.corpora]
        unread = set(range(len(streams)))
        while True:
            index = _weighted_index(rng, self.weights)
            record = next(streams[index], None)
            if record is None:
                unread.discard(index)
                if not unread:
                    return
                streams[index] = self.corpora[index].read("train")
                record = next(streams[index], None)
                if record is None:
                    raise InputError(f"{self.corpora[index].describe()}: no training records")
            yield record

    def describe(self) -> str:
        total = sum(self.weights)
        parts = zip(self.weights, self.corpora, strict=True)
        each = (f"{100 * weight / total:.0f} % {corpus.describe()}" for weight, corpus in parts)
        return f"mix: {' | '.join(each)}"


def _weighted_index(rng: Random, weights: Sequence[int | float]) -> int:
    remaining = rng.random() * sum(weights)
    for index, weight in enumerate(weights):
        remaining -= weight
        if remaining < 0:
            return index
    return len(weights) - 1


def shuffled_stream(items: Iterable[T], buffer_size: int, seed: str) -> Iterator[T]:
    """Yield the items in random order, with `buffer_size` of them in memory.

    Each new item replaces a random item of the buffer, which is yielded. So no item comes more
    than `buffer_size` positions early.
    """
    rng, buffered = Random(seed), list[T]()
    for item in items:
        if len(buffered) < buffer_size:
            buffered.append(item)
            continue
        index = int(rng.random() * buffer_size)
        buffered[index], item = item, buffered[index]
        yield item
    while buffered:
        index = int(rng.random() * len(buffered))
        buffered[index], buffered[-1] = buffered[-1], buffered[index]
        yield buffered.pop()
