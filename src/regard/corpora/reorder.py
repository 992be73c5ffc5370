"""A made-up language into another, with the true word alignment: for seeing what attention learns.

Each source word has a target word of its own, or two; which, a seed decides. The order of the
target follows from the source:

    same    as in the source, but a mover (one word in four) changes places with the word after it
    local   a mover and the three words after it are written backwards
    far     the whole sentence is written backwards

All of it can be learnt, and no target word can be guessed from others: each has to be read.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import product
from random import Random
from typing import Literal, NamedTuple, TypeVar, get_args

from regard.corpora.corpus import Record, check_name
from regard.corpora.made import Made

Order = Literal["same", "local", "far"]
T = TypeVar("T")
ORDERS: tuple[Order, ...] = get_args(Order)
REACH = {"same": 2, "local": 4}  # words that a mover turns around, itself included
MOVERS = 4  # one word in so many
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
MOST_WORDS, LEAST_SENTENCES = 2000, 1000


class Lexicon(NamedTuple):
    """Source words and, at the same places, their target words; the first quarter are movers."""

    source: tuple[str, ...]
    target: tuple[tuple[str, ...], ...]

    def moves(self, word: int) -> bool:
        return word * MOVERS < len(self.source)


class Reorder(Made):
    """A corpus of `size` pairs to train on and `held_out` each in dev and test.

    Records have a third field, `links`: the alignment in Pharaoh format, "0-1 1-0". A source
    sentence is in one split only; the n-th pair of a split depends on the settings and n alone.
    """

    def __init__(
        self,
        size: int = 20_000,
        *,
        seed: int = 0,
        held_out: int = 500,
        order: Order = "far",
        words: int = 40,
        shortest: int = 6,
        longest: int = 12,
        fertility: float = 0.0,
    ) -> None:
        super().__init__(size, seed, held_out)
        check_name("order", order, ORDERS)
        check_sizes(words, shortest, longest)
        if not 0 <= fertility <= 1:
            raise ValueError(f"fertility must be from 0 to 1, not {fertility}")
        self.order = order
        self.shortest, self.longest, self.fertility = shortest, longest, fertility
        self.lexicon = drawn(words, fertility, Random(f"regard lexicon {seed}"))

    def example(self, split: str, number: int) -> Record:
        """The n-th pair, without those before it."""
        chance = Random(f"regard reorder {self.order} {self.seed} {split} {number}")
        words = self.sentence(chance)
        while split_of(words) != split:
            words = self.sentence(chance)
        target: list[str] = []
        links: list[tuple[int, int]] = []
        for place in self.ordered(words):
            for word in self.lexicon.target[words[place]]:
                links.append((place, len(target)))
                target.append(word)
        return {
            "source": " ".join(self.lexicon.source[word] for word in words),
            "target": " ".join(target),
            "links": " ".join(f"{i}-{j}" for i, j in sorted(links)),
        }

    def sentence(self, chance: Random) -> list[int]:
        """Words by their number."""
        length = self.shortest + below(chance, self.longest - self.shortest + 1)
        return [below(chance, len(self.lexicon.source)) for _ in range(length)]

    def ordered(self, words: Sequence[int]) -> list[int]:
        """Places of the source, in the order of the target."""
        if self.order == "far":
            return [*reversed(range(len(words)))]
        places: list[int] = []
        while (here := len(places)) < len(words):
            reach = REACH[self.order] if self.lexicon.moves(words[here]) else 1
            places += reversed(range(here, min(here + reach, len(words))))
        return places

    def describe(self) -> str:
        return (
            f"reorder: {self.size:,} sentences of {self.shortest} to {self.longest} made-up words, "
            f"order {self.order!r}, with their true alignments; made here"
        )


def drawn(words: int, fertility: float, chance: Random) -> Lexicon:
    """Words like "tamo" for the source, words like "ukel" for the target; none has two meanings."""
    syllables = [first + second for first, second in product(CONSONANTS, VOWELS)]
    known = shuffled([one + other for one, other in product(syllables, syllables)], chance)
    meant = iter(shuffled([word[::-1] for word in known], chance))
    double = int(fertility * words + 0.5)
    counts = shuffled([2] * double + [1] * (words - double), chance)
    target = (tuple(next(meant) for _ in range(count)) for count in counts)
    return Lexicon(tuple(known[:words]), tuple(target))


def shuffled(things: list[T], chance: Random) -> list[T]:
    # Only `random()` is promised to be the same in every version of Python.
    return sorted(things, key=lambda _: chance.random())


def below(chance: Random, end: int) -> int:
    return int(chance.random() * end)


def split_of(words: Sequence[int]) -> str:
    """Eight of ten sentences are for training, one for dev, one for the test; by a stable hash."""
    tenth = int.from_bytes(blake2b(str(words).encode(), digest_size=8).digest()) % 10
    return {0: "dev", 1: "test"}.get(tenth, "train")


def check_sizes(words: int, shortest: int, longest: int) -> None:
    if not MOVERS <= words <= MOST_WORDS:
        raise ValueError(f"words must be from {MOVERS} to {MOST_WORDS}, not {words}")
    if not 1 <= shortest <= longest:
        raise ValueError(f"shortest must be from 1 to longest ({longest}), not {shortest}")
    if words**shortest < LEAST_SENTENCES:
        few = f"{words} words and sentences of {shortest}"
        raise ValueError(f"{few} leave too few sentences for three splits: raise words or shortest")
