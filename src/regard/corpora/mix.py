"""Several corpora as one, by weight; and any corpus in a shuffled order, with bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

from regard.corpora.corpus import SPLITS, Corpus, Record, check_split

T = TypeVar("T")


class Mix:
    """Records drawn from several corpora, each as often as its weight says.

    An epoch of training ends when every corpus has been read to its end once; until then those that
    end earlier begin again. Dev and test are those of all corpora, one after another.
    """

    def __init__(
        self, corpora: Sequence[Corpus], weights: Sequence[int | float], *, seed: int = 0
    ) -> None:
        if not corpora:
            raise ValueError("corpora are missing: a mix has at least one")
        if len(corpora) != len(weights):
            raise ValueError(f"{len(weights)} weights for {len(corpora)} corpora: give one each")
        for weight in weights:
            if not 0 < weight < float("inf"):
                raise ValueError(f"weights must be positive, not {weight}")
        for corpus in corpora:
            check_split("train", corpus.splits)
        self.corpora, self.weights, self.seed = tuple(corpora), tuple(weights), seed

    @property
    def splits(self) -> tuple[str, ...]:
        there = {split for corpus in self.corpora for split in corpus.splits}
        return tuple(split for split in SPLITS if split in there)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        if split == "train":
            yield from self._drawn()
            return
        for corpus in self.corpora:
            if split in corpus.splits:
                yield from corpus.read(split)

    def _drawn(self) -> Iterator[Record]:
        chance = Random(f"regard mix {self.seed}")
        streams = [corpus.read("train") for corpus in self.corpora]
        unread = set(range(len(streams)))
        while True:
            number = _weighted(chance, self.weights)
            record = next(streams[number], None)
            if record is None:
                unread.discard(number)
                if not unread:
                    return
                streams[number] = self.corpora[number].read("train")
                record = next(streams[number], None)
                if record is None:
                    raise ValueError(f"{self.corpora[number].describe()}: nothing to train on")
            yield record

    def describe(self) -> str:
        total = sum(self.weights)
        parts = zip(self.weights, self.corpora, strict=True)
        each = (f"{100 * weight / total:.0f} % {corpus.describe()}" for weight, corpus in parts)
        return f"mix: {' | '.join(each)}"


def _weighted(chance: Random, weights: Sequence[int | float]) -> int:
    left = chance.random() * sum(weights)
    for number, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return number
    return len(weights) - 1


def shuffled(things: Iterable[T], buffer: int, seed: str) -> Iterator[T]:
    """The same things in another order, `buffer` of them in memory.

    Each that comes takes the place of one drawn from the buffer, so that nothing is more than
    `buffer` places early.
    """
    chance, held = Random(seed), list[T]()
    for thing in things:
        if len(held) < buffer:
            held.append(thing)
            continue
        place = int(chance.random() * buffer)
        held[place], thing = thing, held[place]
        yield thing
    while held:
        place = int(chance.random() * len(held))
        held[place], held[-1] = held[-1], held[place]
        yield held.pop()
