"""A unigram language model over pieces (Kudo 2018, "Subword regularization", 3.2).

    P(word) = sum over its cuts x of prod_i p(x_i),   p by EM,

starting from every piece that is seen often enough; after each EM those pieces go without which
the likelihood falls least. The `tokenizers` library can train one too, but two runs on the same
text differ: there the order of the words is that of a hash table.
"""

from array import array
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

LONGEST = 16  # characters in a piece, as in SentencePiece
SEEDS = 100_000  # pieces to start from
KEEP = 0.75  # of the pieces, each time
ROUNDS = 2  # of EM, each time
CHARACTERS = 2_000_000  # of different words, frequent ones first: more would take gigabytes


def learn_unigram(
    words: Mapping[str, int], size: int, min_count: int = 1
) -> list[tuple[str, float]]:
    """At most `size` pieces with their log-probabilities, likely ones first, from counted words."""
    import numpy as np

    words, alphabet = _spelt(_most_frequent(words), size)
    pieces = alphabet + _seeds(words, max(2, min_count), max(SEEDS, size))
    lattice = Lattice.of(list(words), pieces)
    without = Lattice.of(pieces, pieces, whole=False)
    counts = np.array(list(words.values()), dtype=float)
    expected = np.bincount(lattice.piece, weights=counts[lattice.word], minlength=len(pieces))
    alive = np.ones(len(pieces), dtype=bool)
    scores = _log_shares(expected, alive)
    while True:
        for _ in range(ROUNDS):
            expected = lattice.expect(scores, counts)
            scores = _log_shares(expected, alive)
        if alive.sum() <= size:
            break
        # differs: as in SentencePiece, the counts of the others are taken to stay as they are.
        with np.errstate(invalid="ignore"):  # -inf + inf, for pieces that are gone
            loss = np.where(alive, expected * (scores - without.best(scores)), -np.inf)
        loss[: len(alphabet)] = np.inf  # without its letters a word could not be written
        room = max(size, int(KEEP * alive.sum()))
        alive = np.zeros_like(alive)
        alive[np.argsort(-loss, kind="stable")[:room]] = True
        lattice, without = lattice.only(alive), without.only(alive)
        scores = _log_shares(expected, alive)
    # Six digits: the last ones depend on the machine.
    final = [(pieces[n], round(float(scores[n]), 6)) for n in np.flatnonzero(alive)]
    return sorted(final, key=lambda entry: (-entry[1], entry[0]))


def _ranked(counts: Mapping[str, int]) -> list[str]:
    return sorted(counts, key=lambda key: (-counts[key], key))


def _most_frequent(words: Mapping[str, int]) -> dict[str, int]:
    """In an order of their own, so that no sum depends on the order of the text."""
    kept: dict[str, int] = {}
    total = 0
    for word in _ranked(words):
        total += len(word)
        if kept and total > CHARACTERS:
            break
        kept[word] = words[word]
    return kept


def _spelt(words: Mapping[str, int], size: int) -> tuple[dict[str, int], list[str]]:
    """The alphabet, and the words cut where they have a character that does not fit into it."""
    letters = Counter[str]()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
    alphabet = _ranked(letters)[:size]
    if len(alphabet) == len(letters):
        return dict(words), alphabet
    known = set(alphabet)
    cut = Counter[str]()
    for word, count in words.items():
        for spelt, part in groupby(word, known.__contains__):
            if spelt:
                cut["".join(part)] += count
    return dict(cut), alphabet


def _seeds(words: Mapping[str, int], least: int, most: int) -> list[str]:
    """Pieces of two characters and more seen `least` times, by the characters that they cover.

    A piece is frequent only if both it without its first and without its last character are.
    """
    covered: dict[str, int] = {}
    shorter: set[str] | None = None
    for length in range(2, LONGEST + 1):
        seen = Counter[str]()
        for word, count in words.items():
            for start in range(len(word) - length + 1):
                piece = word[start : start + length]
                if shorter is None or (piece[:-1] in shorter and piece[1:] in shorter):
                    seen[piece] += count
        shorter = {piece for piece, count in seen.items() if count >= least}
        if not shorter:
            break
        covered.update({piece: seen[piece] * length for piece in shorter})
    return _ranked(covered)[:most]


def _log_shares(counts: "np.ndarray", alive: "np.ndarray") -> "np.ndarray":
    import numpy as np

    counts = np.maximum(counts, 1e-6)  # a letter that is never used alone is still a letter
    return np.where(alive, np.log(counts) - np.log(counts[alive].sum()), -np.inf)


class Column(NamedTuple):
    """The edges that meet in the n-th places of all words: `groups` begin at these edges."""

    edges: "np.ndarray"
    groups: "np.ndarray"
    places: "np.ndarray"


class Lattice(NamedTuple):
    """All ways to cut some words into pieces, as edges between places.

    A word of n characters has n + 1 places; all words lie one after another. Columns are what
    numpy can do for all words at once.
    """

    start: "np.ndarray"
    end: "np.ndarray"
    piece: "np.ndarray"
    word: "np.ndarray"
    first: "np.ndarray"
    """The first place of each word; one entry more than there are words."""
    forward: list[Column]
    backward: list[Column]
    pieces: int

    @classmethod
    def of(cls, words: list[str], pieces: list[str], *, whole: bool = True) -> "Lattice":
        """Without `whole`, no word of several characters is itself a piece."""
        import numpy as np

        numbers = {piece: number for number, piece in enumerate(pieces)}
        longest = max(map(len, pieces))
        sizes = np.array([len(word) for word in words])
        first = np.concatenate([[0], np.cumsum(sizes + 1)])
        edges: list[list[np.ndarray]] = []
        for size in np.unique(sizes):  # words of one length have the same places to cut
            cuts = [(a, b) for a in range(size) for b in range(a + 1, min(a + longest, size) + 1)]
            here = np.flatnonzero(sizes == size)
            found = array("i")
            for index in here:
                word = words[index]
                found.extend([numbers.get(word[a:b], -1) for a, b in cuts])
            piece = np.frombuffer(found, dtype=np.int32).reshape(len(here), len(cuts)).copy()
            if not whole and size > 1:
                piece[:, [cut == (0, size) for cut in cuts]] = -1
            row, column = np.nonzero(piece >= 0)
            a, b = np.array(cuts)[column].T
            word = here[row]
            edges.append([first[word] + a, first[word] + b, piece[row, column], word])
        start, end, piece, word = map(np.concatenate, zip(*edges, strict=True))
        return cls._with_columns(start, end, piece, word, first, len(pieces))

    def only(self, alive: "np.ndarray") -> "Lattice":
        """Without the edges of pieces that are gone."""
        kept = alive[self.piece]
        start, end, piece, word = (
            self.start[kept],
            self.end[kept],
            self.piece[kept],
            self.word[kept],
        )
        return self._with_columns(start, end, piece, word, self.first, self.pieces)

    @classmethod
    def _with_columns(
        cls,
        start: "np.ndarray",
        end: "np.ndarray",
        piece: "np.ndarray",
        word: "np.ndarray",
        first: "np.ndarray",
        pieces: int,
    ) -> "Lattice":
        forward = _columns(end - first[word], end)
        backward = _columns(start - first[word], start)[::-1]
        return cls(start, end, piece, word, first, forward, backward, pieces)

    def expect(self, scores: "np.ndarray", counts: "np.ndarray") -> "np.ndarray":
        """How often each piece is used, over all cuts by their probability (the E step)."""
        import numpy as np

        gain = scores[self.piece]
        before = np.zeros(self.first[-1])
        for edges, groups, places in self.forward:
            before[places] = _log_sum(before[self.start[edges]] + gain[edges], groups)
        after = np.zeros(self.first[-1])
        for edges, groups, places in self.backward:
            after[places] = _log_sum(after[self.end[edges]] + gain[edges], groups)
        whole = before[self.first[1:] - 1]
        share = np.exp(before[self.start] + gain + after[self.end] - whole[self.word])
        return np.bincount(self.piece, weights=share * counts[self.word], minlength=self.pieces)

    def best(self, scores: "np.ndarray") -> "np.ndarray":
        """The log-probability of the likeliest cut of each word."""
        import numpy as np

        gain = scores[self.piece]
        before = np.zeros(self.first[-1])
        for edges, groups, places in self.forward:
            before[places] = np.maximum.reduceat(before[self.start[edges]] + gain[edges], groups)
        return before[self.first[1:] - 1]


def _columns(column: "np.ndarray", place: "np.ndarray") -> list[Column]:
    import numpy as np

    order = np.lexsort((place, column))
    bounds = np.flatnonzero(np.diff(column[order])) + 1
    found = []
    for edges in np.split(order, bounds):
        meet = place[edges]
        groups = np.flatnonzero(np.diff(meet, prepend=-1))
        found.append(Column(edges, groups, meet[groups]))
    return found


def _log_sum(values: "np.ndarray", groups: "np.ndarray") -> "np.ndarray":
    import numpy as np

    top = np.maximum.reduceat(values, groups)
    spread = np.repeat(top, np.diff(groups, append=len(values)))
    return top + np.log(np.add.reduceat(np.exp(values - spread), groups))
