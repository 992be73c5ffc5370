"""Sequences of random bit vectors, to be copied or recalled (Graves et al. 2014, sec. 4.1, 4.3).

    copy     01101001 11100010 …                target: the same vectors, in the same order
    recall   010011 110101 | 001010 111011 | 100110 000001 ? 010011 110101
                                                target: the item after the one in the query

A model reads one vector or marker a step, then one empty input for each vector of the target. The
target depends on the sequence alone. Vectors and markers are ids: a vector is the number that its
bits write, and markers follow after all vectors.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from random import Random

from regard.data.corpus import SPLITS, Record, check_split
from regard.data.synthetic.planted import random_between
from regard.data.synthetic.reorder import random_below
from regard.errors import InputError

MAX_WIDTH = 24
ITEM_MARKER, QUERY_MARKER = "|", "?"


class BitFormat(ABC):
    """Converts the text of a sequence of `width`-bit vectors into ids of inputs and targets."""

    markers: tuple[str, ...]  # display names

    def __init__(self, width: int):
        if not 1 <= width <= MAX_WIDTH:
            raise InputError(f"width must be from 1 to {MAX_WIDTH}, not {width}")
        self.width = width

    @abstractmethod
    def input_ids(self, text: str, location: str) -> list[int]:
        """Return the ids of all inputs, markers included; errors name `location`."""

    @abstractmethod
    def target_ids(self, text: str, location: str) -> list[int]:
        """Return the target vectors."""

    def marker_id(self, kind: int) -> int:
        return 2**self.width + kind

    def parse_vectors(self, text: str, location: str) -> list[int]:
        words = text.split()
        for word in words:
            if len(word) != self.width or set(word) - {"0", "1"}:
                expected = f"a vector of {self.width} bits, as {'0110' * 6:.{self.width}}"
                raise InputError(f"{location}: {word[:40]!r} is not {expected}")
        return [int(word, 2) for word in words]

    def format_vectors(self, vectors: Sequence[int]) -> str:
        return " ".join(f"{vector:0{self.width}b}" for vector in vectors)

    def symbol_name(self, symbol_id: int) -> str:
        """Return the bits of a vector, or the display name of a marker."""
        kind = symbol_id - 2**self.width
        return self.format_vectors([symbol_id]) if kind < 0 else self.markers[kind]


class CopyFormat(BitFormat):
    """Vectors and an end marker; the target is all vectors."""

    markers = ("(end)",)

    def input_ids(self, text: str, location: str) -> list[int]:
        return [*self.target_ids(text, location), self.marker_id(0)]

    def target_ids(self, text: str, location: str) -> list[int]:
        if not (vectors := self.parse_vectors(text, location)):
            raise InputError(
                f"{location}: empty; give vectors of {self.width} bits, separated by spaces"
            )
        return vectors


class RecallFormat(BitFormat):
    """Items of several vectors, each after a marker; then one item again, between query markers."""

    markers = (ITEM_MARKER, QUERY_MARKER)

    def __init__(self, width: int, vectors_per_item: int):
        super().__init__(width)
        if vectors_per_item < 1:
            raise InputError(f"vectors_per_item must be at least 1, not {vectors_per_item}")
        self.vectors_per_item = vectors_per_item

    def input_ids(self, text: str, location: str) -> list[int]:
        items, query = self.split_items(text, location)
        item_ids = [symbol_id for item in items for symbol_id in (self.marker_id(0), *item)]
        return [*item_ids, self.marker_id(1), *query, self.marker_id(1)]

    def target_ids(self, text: str, location: str) -> list[int]:
        items, query = self.split_items(text, location)
        if query not in items[:-1]:
            raise InputError(
                f"{location}: the query is none of the items before the last; repeat one of them"
            )
        return items[items.index(query) + 1]

    def split_items(self, text: str, location: str) -> tuple[list[list[int]], list[int]]:
        before, marker, query = text.partition(QUERY_MARKER)
        if not marker:
            raise InputError(f"{location}: no query; write it as ITEM | ITEM ? ITEM")
        parsed_items = [
            self.parse_vectors(item, location) for item in [*before.split(ITEM_MARKER), query]
        ]
        for item in parsed_items:
            if len(item) != self.vectors_per_item:
                raise InputError(
                    f"{location}: an item has {len(item)} vectors, not {self.vectors_per_item}"
                )
        return parsed_items[:-1], parsed_items[-1]


class BitSequences(ABC):
    """A corpus of `size` training sequences, and `held_out` in dev and for each test size.

    Records are {"source", "target", "size"} and depend on the settings and their index alone. The
    test has `held_out` sequences of each size in `test_sizes`, which may exceed all sizes of the
    training data.
    """

    splits = SPLITS
    size_unit: str  # what the size of a sequence counts

    def __init__(
        self,
        sequence_format: BitFormat,
        size: int,
        seed: int,
        held_out: int,
        size_range: tuple[int, int],
        test_sizes: Sequence[int],
    ):
        for name, count in {"size": size, "held_out": held_out}.items():
            if count < 1:
                raise InputError(f"{name} must be at least 1, not {count}")
        if (
            not test_sizes
            or min(test_sizes) < size_range[0]
            or len(set(test_sizes)) < len(test_sizes)
        ):
            raise InputError(
                f"test_sizes must be different numbers of at least {size_range[0]}, "
                f"not {[*test_sizes]}"
            )
        self.sequence_format, self.size, self.seed, self.held_out = (
            sequence_format,
            size,
            seed,
            held_out,
        )
        self.size_range, self.test_sizes = size_range, tuple(test_sizes)

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        count = {"train": self.size, "dev": self.held_out}.get(
            split, self.held_out * len(self.test_sizes)
        )
        for index in range(count):
            yield self.example(split, index)

    def example(self, split: str, index: int) -> Record:
        """Return sequence `index` of a split, without drawing those before it."""
        rng = Random(f"regard {type(self).__name__} {self.seed} {split} {index}")
        random_size = random_between(rng, *self.size_range)
        size = self.test_sizes[index // self.held_out] if split == "test" else random_size
        source = self.draw_sequence(rng, size)
        target = self.sequence_format.format_vectors(self.sequence_format.target_ids(source, split))
        return {"source": source, "target": target, "size": size}

    @abstractmethod
    def draw_sequence(self, rng: Random, size: int) -> str:
        """Draw the text of a sequence."""

    def describe(self) -> str:
        low, high = self.size_range
        sizes = (
            f"{low} to {high} {self.size_unit}, tested on {', '.join(map(str, self.test_sizes))}"
        )
        name = type(self).__name__.lower()
        return (
            f"{name}: {self.size:,} sequences of {sizes}, {self.sequence_format.width} bits "
            "each; synthetic"
        )


class Copy(BitSequences):
    """Sequences of `min_vectors` to `max_vectors` vectors."""

    size_unit = "vectors"

    def __init__(
        self,
        size: int = 50_000,
        *,
        seed: int = 0,
        held_out: int = 200,
        width: int = 8,
        min_vectors: int = 1,
        max_vectors: int = 20,
        test_sizes: Sequence[int] = (20, 40, 80, 120),
    ) -> None:
        if not 1 <= min_vectors <= max_vectors:
            raise InputError(
                f"min_vectors must be from 1 to max_vectors ({max_vectors}), not {min_vectors}"
            )
        super().__init__(
            CopyFormat(width), size, seed, held_out, (min_vectors, max_vectors), test_sizes
        )

    def draw_sequence(self, rng: Random, size: int) -> str:
        vector_count = 2**self.sequence_format.width
        return self.sequence_format.format_vectors(
            [random_below(rng, vector_count) for _ in range(size)]
        )


class Recall(BitSequences):
    """Sequences of `min_items` to `max_items` different items of `vectors_per_item` vectors.

    The query is a random item, but not the last.
    """

    size_unit = "items"

    def __init__(
        self,
        size: int = 50_000,
        *,
        seed: int = 0,
        held_out: int = 200,
        width: int = 6,
        vectors_per_item: int = 3,
        min_items: int = 2,
        max_items: int = 6,
        test_sizes: Sequence[int] = (6, 10, 15),
    ) -> None:
        if not 2 <= min_items <= max_items:
            raise InputError(
                f"min_items must be from 2 to max_items ({max_items}), not {min_items}"
            )
        super().__init__(
            RecallFormat(width, vectors_per_item),
            size,
            seed,
            held_out,
            (min_items, max_items),
            test_sizes,
        )
        if 2 ** (width * vectors_per_item) < 2 * max(max_items, *test_sizes):
            raise InputError("too few different items: raise width or vectors_per_item")
        self.vectors_per_item = vectors_per_item

    def draw_sequence(self, rng: Random, size: int) -> str:
        items: dict[str, None] = {}  # different items, in the order of drawing
        while len(items) < size:
            vectors = [
                random_below(rng, 2**self.sequence_format.width)
                for _ in range(self.vectors_per_item)
            ]
            items[self.sequence_format.format_vectors(vectors)] = None
        item_texts = list(items)
        return (
            f"{f' {ITEM_MARKER} '.join(item_texts)} {QUERY_MARKER} "
            f"{item_texts[random_below(rng, size - 1)]}"
        )
