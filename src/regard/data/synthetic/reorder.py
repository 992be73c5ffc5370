"""Translation between two artificial languages with known word alignments.

Each source word has one target word or two, drawn by the seed. The order of the target depends on
the source:

    same    as in the source, but a mover (one word in four) is swapped with the next word
    local   a mover and the three words after it are reversed
    far     the complete sentence is reversed

The mapping is deterministic, and target words are independent of each other: a model has to read
every source word.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import product
from random import Random
from typing import Literal, NamedTuple, TypeVar, get_args

from regard.data.corpus import Record, check_name
from regard.data.synthetic.base import SyntheticCorpus
from regard.errors import InputError

Order = Literal["same", "local", "far"]
T = TypeVar("T")
ORDERS: tuple[Order, ...] = get_args(Order)
BLOCK_WORDS = {"same": 2, "local": 4}  # words that a mover reverses, itself included
WORDS_PER_MOVER = 4  # one word in four is a mover
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
MAX_WORDS, MIN_SENTENCES = 2000, 1000


class Lexicon(NamedTuple):
    """Source words and their target words, by index; the first quarter are movers."""

    source: tuple[str, ...]
    target: tuple[tuple[str, ...], ...]

    def is_mover(self, word: int) -> bool:
        return word * WORDS_PER_MOVER < len(self.source)


class ReorderedSentences(SyntheticCorpus):
    """A corpus of `size` training pairs and `held_out` each in dev and test.

    Records have a third field, `links`: the alignment in Pharaoh format, "0-1 1-0". A source
    sentence is in one split only, and a pair depends on the settings and its index alone.
    """

    def __init__(
        self,
        size: int = 20_000,
        *,
        seed: int = 0,
        held_out: int = 500,
        order: Order = "far",
        vocabulary_size: int = 40,
        min_words: int = 6,
        max_words: int = 12,
        fertility: float = 0.0,
    ) -> None:
        super().__init__(size, seed, held_out)
        check_name("order", order, ORDERS)
        check_sizes(vocabulary_size, min_words, max_words)
        if not 0 <= fertility <= 1:
            raise InputError(f"fertility must be from 0 to 1, not {fertility}")
        self.order = order
        self.min_words, self.max_words, self.fertility = min_words, max_words, fertility
        self.lexicon = draw_lexicon(vocabulary_size, fertility, Random(f"regard lexicon {seed}"))

    def example(self, split: str, index: int) -> Record:
        """Return pair `index` of a split, without drawing those before it."""
        rng = Random(f"regard reorder {self.order} {self.seed} {split} {index}")
        words = self.draw_sentence(rng)
        while sentence_split(words) != split:
            words = self.draw_sentence(rng)
        target: list[str] = []
        links: list[tuple[int, int]] = []
        for position in self.target_order(words):
            for word in self.lexicon.target[words[position]]:
                links.append((position, len(target)))
                target.append(word)
        return {
            "source": " ".join(self.lexicon.source[word] for word in words),
            "target": " ".join(target),
            "links": " ".join(f"{i}-{j}" for i, j in sorted(links)),
        }

    def draw_sentence(self, rng: Random) -> list[int]:
        """Draw the indices of the words of a sentence."""
        length = self.min_words + random_below(rng, self.max_words - self.min_words + 1)
        return [random_below(rng, len(self.lexicon.source)) for _ in range(length)]

    def target_order(self, words: Sequence[int]) -> list[int]:
        """Return the source positions in the order of the target."""
        if self.order == "far":
            return [*reversed(range(len(words)))]
        positions: list[int] = []
        while (position := len(positions)) < len(words):
            block_size = BLOCK_WORDS[self.order] if self.lexicon.is_mover(words[position]) else 1
            positions += reversed(range(position, min(position + block_size, len(words))))
        return positions

    def describe(self) -> str:
        return (
            f"reorder: {self.size:,} sentences of {self.min_words} to {self.max_words} "
            f"artificial words, order {self.order!r}, with true alignments; synthetic"
        )


def draw_lexicon(words: int, fertility: float, rng: Random) -> Lexicon:
    """Draw source words like "tamo" and target words like "ukel", all different."""
    syllables = [first + second for first, second in product(CONSONANTS, VOWELS)]
    source_words = shuffled([left + right for left, right in product(syllables, syllables)], rng)
    target_words = iter(shuffled([word[::-1] for word in source_words], rng))
    double = int(fertility * words + 0.5)
    counts = shuffled([2] * double + [1] * (words - double), rng)
    target = (tuple(next(target_words) for _ in range(count)) for count in counts)
    return Lexicon(tuple(source_words[:words]), tuple(target))


def shuffled(items: list[T], rng: Random) -> list[T]:
    # Python promises the same numbers in all versions for `random()` only.
    return sorted(items, key=lambda _: rng.random())


def random_below(rng: Random, end: int) -> int:
    return int(rng.random() * end)


def sentence_split(words: Sequence[int]) -> str:
    """Return the split of a sentence: by a stable hash, 80 % train, 10 % dev, 10 % test."""
    bucket = int.from_bytes(blake2b(str(words).encode(), digest_size=8).digest()) % 10
    return {0: "dev", 1: "test"}.get(bucket, "train")


def check_sizes(words: int, min_words: int, max_words: int) -> None:
    if not WORDS_PER_MOVER <= words <= MAX_WORDS:
        raise InputError(
            f"vocabulary_size must be from {WORDS_PER_MOVER} to {MAX_WORDS}, not {words}"
        )
    if not 1 <= min_words <= max_words:
        raise InputError(f"min_words must be from 1 to max_words ({max_words}), not {min_words}")
    if words**min_words < MIN_SENTENCES:
        sizes = f"{words} words and sentences of {min_words}"
        raise InputError(
            f"{sizes} leave too few sentences for three splits; raise vocabulary_size or min_words"
        )
