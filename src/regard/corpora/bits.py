"""Random vectors of bits to be remembered: copied, or recalled by what came before them.

    copy     01101001 11100010 …                the same vectors, in the same order
    recall   010011 110101 | 001010 111011 | 100110 000001 ? 010011 110101
                                                the item that follows the one asked for

Graves et al. 2014, sec. 4.1 and 4.3. A machine is shown vectors and marks, one at a step, and then
as many empty steps as there are vectors to be told. Nothing but the sequence tells the answer. Here
vectors and marks are numbers: a vector is that of its bits, marks come behind all vectors.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from random import Random

from regard.corpora.corpus import SPLITS, Record, check_split
from regard.corpora.planted import between
from regard.corpora.reorder import below

WIDEST = 24
ITEM, ASKED = "|", "?"


class Form(ABC):
    """How a sequence is written, shown and answered, for vectors of `width` bits."""

    marks: tuple[str, ...]  # the kinds of them, as people see them

    def __init__(self, width: int):
        if not 1 <= width <= WIDEST:
            raise ValueError(f"width must be from 1 to {WIDEST}, not {width}")
        self.width = width

    @abstractmethod
    def shown(self, text: str, place: str) -> list[int]:
        """All that is shown, marks included, or an error that says what is wrong at `place`."""

    @abstractmethod
    def answer(self, text: str, place: str) -> list[int]:
        """The vectors to be told."""

    def mark(self, kind: int) -> int:
        return 2**self.width + kind

    def vectors(self, text: str, place: str) -> list[int]:
        words = text.split()
        for word in words:
            if len(word) != self.width or set(word) - {"0", "1"}:
                wanted = f"a vector of {self.width} bits, as {'0110' * 6:.{self.width}}"
                raise ValueError(f"{place}: {word[:40]!r} is not {wanted}")
        return [int(word, 2) for word in words]

    def written(self, vectors: Sequence[int]) -> str:
        return " ".join(f"{vector:0{self.width}b}" for vector in vectors)

    def name(self, number: int) -> str:
        """Of a vector or a mark, for people."""
        kind = number - 2**self.width
        return self.written([number]) if kind < 0 else self.marks[kind]


class CopyForm(Form):
    """The vectors, then a mark: all of them are to be told."""

    marks = ("(end)",)

    def shown(self, text: str, place: str) -> list[int]:
        return [*self.answer(text, place), self.mark(0)]

    def answer(self, text: str, place: str) -> list[int]:
        if not (vectors := self.vectors(text, place)):
            raise ValueError(f"{place}: empty; give vectors of {self.width} bits, a space between")
        return vectors


class RecallForm(Form):
    """Items of `vectors` vectors, a mark before each; then one of them, between other marks."""

    marks = (ITEM, ASKED)

    def __init__(self, width: int, vectors: int):
        super().__init__(width)
        if vectors < 1:
            raise ValueError(f"vectors must be at least 1, not {vectors}")
        self.many = vectors

    def shown(self, text: str, place: str) -> list[int]:
        items, asked = self.parts(text, place)
        told = [number for item in items for number in (self.mark(0), *item)]
        return [*told, self.mark(1), *asked, self.mark(1)]

    def answer(self, text: str, place: str) -> list[int]:
        items, asked = self.parts(text, place)
        if asked not in items[:-1]:
            raise ValueError(f"{place}: what is asked for is none of the items before the last")
        return items[items.index(asked) + 1]

    def parts(self, text: str, place: str) -> tuple[list[list[int]], list[int]]:
        before, mark, asked = text.partition(ASKED)
        if not mark:
            raise ValueError(f"{place}: nothing is asked for; write it as ITEM | ITEM ? ITEM")
        found = [self.vectors(item, place) for item in [*before.split(ITEM), asked]]
        for item in found:
            if len(item) != self.many:
                raise ValueError(f"{place}: an item has {len(item)} vectors, not {self.many}")
        return found[:-1], found[-1]


class Bits(ABC):
    """A corpus of `size` sequences to train on and `held_out` in dev; and of each tested size.

    Records are {"source", "target", "size"}. The n-th of a split depends on the settings and n
    alone. The test has `held_out` sequences of each size in `tested`, which may be longer than any
    that was trained on.
    """

    splits = SPLITS
    what: str  # what the size of a sequence is the number of

    def __init__(
        self,
        form: Form,
        size: int,
        seed: int,
        held_out: int,
        sizes: tuple[int, int],
        tested: Sequence[int],
    ):
        for name, number in {"size": size, "held_out": held_out}.items():
            if number < 1:
                raise ValueError(f"{name} must be at least 1, not {number}")
        if not tested or min(tested) < sizes[0] or len(set(tested)) < len(tested):
            raise ValueError(
                f"tested must be different numbers, from {sizes[0]} on, not {[*tested]}"
            )
        self.form, self.size, self.seed, self.held_out = form, size, seed, held_out
        self.sizes, self.tested = sizes, tuple(tested)

    def read(self, split: str) -> Iterator[Record]:
        """Every sequence of the split, made one at a time."""
        check_split(split, self.splits)
        many = {"train": self.size, "dev": self.held_out}.get(
            split, self.held_out * len(self.tested)
        )
        for number in range(many):
            yield self.sequence(split, number)

    def sequence(self, split: str, number: int) -> Record:
        """The n-th sequence, without those before it."""
        chance = Random(f"regard {type(self).__name__} {self.seed} {split} {number}")
        drawn = between(chance, *self.sizes)
        size = self.tested[number // self.held_out] if split == "test" else drawn
        source = self.drawn(chance, size)
        target = self.form.written(self.form.answer(source, split))
        return {"source": source, "target": target, "size": size}

    @abstractmethod
    def drawn(self, chance: Random, size: int) -> str:
        """A sequence, written."""

    def describe(self) -> str:
        low, high = self.sizes
        sizes = f"{low} to {high} {self.what}, tested on {', '.join(map(str, self.tested))}"
        name = type(self).__name__.lower()
        return f"{name}: {self.size:,} sequences of {sizes}, {self.form.width} bits each; made here"


class Copy(Bits):
    """Sequences of `shortest` to `longest` vectors."""

    what = "vectors"

    def __init__(
        self,
        size: int = 50_000,
        *,
        seed: int = 0,
        held_out: int = 200,
        width: int = 8,
        shortest: int = 1,
        longest: int = 20,
        tested: Sequence[int] = (20, 40, 80, 120),
    ) -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"shortest must be from 1 to longest ({longest}), not {shortest}")
        super().__init__(CopyForm(width), size, seed, held_out, (shortest, longest), tested)

    def drawn(self, chance: Random, size: int) -> str:
        most = 2**self.form.width
        return self.form.written([below(chance, most) for _ in range(size)])


class Recall(Bits):
    """`fewest` to `most` different items of `vectors` vectors each, and one but the last again."""

    what = "items"

    def __init__(
        self,
        size: int = 50_000,
        *,
        seed: int = 0,
        held_out: int = 200,
        width: int = 6,
        vectors: int = 3,
        fewest: int = 2,
        most: int = 6,
        tested: Sequence[int] = (6, 10, 15),
    ) -> None:
        if not 2 <= fewest <= most:
            raise ValueError(f"fewest must be from 2 to most ({most}), not {fewest}")
        super().__init__(RecallForm(width, vectors), size, seed, held_out, (fewest, most), tested)
        if 2 ** (width * vectors) < 2 * max(most, *tested):
            raise ValueError("too few different items: raise width or vectors")
        self.vectors = vectors

    def drawn(self, chance: Random, size: int) -> str:
        items: dict[str, None] = {}  # an item is there once, in the order of drawing
        while len(items) < size:
            drawn = [below(chance, 2**self.form.width) for _ in range(self.vectors)]
            items[self.form.written(drawn)] = None
        known = list(items)
        return f"{f' {ITEM} '.join(known)} {ASKED} {known[below(chance, size - 1)]}"
