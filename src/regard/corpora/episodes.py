"""Episodes of few-shot learning: some classes, a few examples of each, and one more to be told.

    prototypes   a class is a point m ~ N(0, I), its examples are x ~ N(m, noise^2 I)

What is best there is known: the class whose examples' mean, drawn to 0 by n / (n + noise^2), is
nearest. A class of any other corpus is a folder of pictures (`corpora.gallery`).

e: episodes   s: examples that are shown with their class   q: those that are asked for
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.corpora.corpus import SPLITS, Record, check_split

Ints = NDArray[np.int64]
TRAINED = 3  # the seeds of episodes to train on begin with it; those of dev and test with less


@dataclass(frozen=True)
class Dealt:
    """Episodes of one size. An example has one class of its episode, from 0."""

    shown: NDArray[Any]  # [e s+q …] examples with a class, then those without
    labels: Ints  # [e s]
    wanted: Ints  # [e q]
    order: Ints  # [e q s] in which the examples are shown before each that is asked for


class Hand(NamedTuple):
    labels: Ints
    wanted: Ints
    order: Ints


def hand(chance: np.random.Generator, many: int, ways: int, shots: int, queries: int) -> Hand:
    """All but the examples. Classes are asked for in turn, beginning anywhere."""
    labels = np.broadcast_to(np.arange(ways).repeat(shots), (many, ways * shots))
    turns = chance.random((many, ways)).argsort(-1)
    wanted = np.tile(turns, -(-queries // ways))[:, :queries]
    order = chance.random((many, queries, ways * shots)).argsort(-1)
    return Hand(labels, wanted, order)


class Episodes(ABC):
    """A corpus of `episodes` in dev and in the test, and of any number to train on.

    Records are {"shown": examples in their order, the last is asked for; "labels": of all but it;
    "wanted": its class}. The n-th of a split depends on the settings and n alone.
    """

    splits = SPLITS

    def __init__(self, ways: int, shots: int, seed: int, episodes: int):
        if ways < 2:
            raise ValueError(f"ways must be at least 2, not {ways}: there is nothing to tell apart")
        self.ways, self.shots, self.seed, self.episodes = ways, shots, seed, episodes

    @abstractmethod
    def deal(
        self, split: str, chance: np.random.Generator, many: int, shots: int, queries: int
    ) -> Dealt:
        """So many episodes of classes of this split."""

    @abstractmethod
    def describe(self) -> str: ...

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        for number in range(self.episodes):
            chance = np.random.default_rng([self.splits.index(split), self.seed, number])
            one = self.deal(split, chance, 1, self.shots, 1)
            order = one.order[0, 0]
            shown = one.shown[0][[*order, len(order)]]
            yield {"shown": shown, "labels": one.labels[0, order], "wanted": int(one.wanted[0, 0])}

    def batch(self, seed: int, number: int, many: int, queries: int, varied: bool) -> Dealt:
        """The n-th batch to train on; `varied`: of any number of shots up to our own."""
        chance = np.random.default_rng([TRAINED, self.seed, seed, number])
        shots = int(chance.integers(1, self.shots + 1)) if varied else self.shots
        return self.deal("train", chance, many, shots, queries)


class Prototypes(Episodes):
    """Points around points: the same in every split, for a class is never met twice."""

    def __init__(
        self,
        ways: int = 5,
        shots: int = 1,
        *,
        dim: int = 8,
        noise: float = 0.5,
        seed: int = 0,
        episodes: int = 2000,
    ) -> None:
        super().__init__(ways, shots, seed, episodes)
        self.dim, self.noise = dim, noise

    def deal(
        self, split: str, chance: np.random.Generator, many: int, shots: int, queries: int
    ) -> Dealt:
        del split
        labels, wanted, order = hand(chance, many, self.ways, shots, queries)
        means = chance.standard_normal((many, self.ways, self.dim))
        classes = np.concatenate([labels, wanted], 1)
        middle = np.take_along_axis(means, classes[..., None], 1)
        shown = middle + self.noise * chance.standard_normal(middle.shape)
        return Dealt(shown.astype(np.float32), labels, wanted, order)

    def best(self, record: Record) -> int:
        """What nobody can tell better: the class that is likeliest, given what is shown."""
        shown, labels = record["shown"], record["labels"]
        each = np.bincount(labels, minlength=self.ways)
        sums = np.stack([shown[:-1][labels == way].sum(0) for way in range(self.ways)])
        around = sums / (each + self.noise**2)[:, None]
        return int(((around - shown[-1]) ** 2).sum(-1).argmin())

    def describe(self) -> str:
        return (
            f"prototypes: {self.ways} ways, {self.shots} shots, points of {self.dim} numbers with "
            f"noise {self.noise:g}; made here"
        )
