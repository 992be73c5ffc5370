"""A unigram language model over pieces (Kudo 2018, "Subword regularization", 3.2).

    P(word) = sum over its segmentations x of prod_i p(x_i),   p by EM

EM starts from all frequent pieces. After each EM, the pieces whose removal costs the least
likelihood are pruned. The `tokenizers` library has such a trainer, but its results differ between
runs, because its words are in the order of a hash table.
"""

from array import array
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

MAX_PIECE_LENGTH = 16  # characters, as in SentencePiece
MAX_SEED_PIECES = 100_000
KEPT_FRACTION = 0.75  # of the pieces, at each pruning
EM_ITERATIONS = 2  # before each pruning
MAX_CHARACTERS = 2_000_000  # of different words, the frequent ones: more would take gigabytes


def train_unigram(
    words: Mapping[str, int], size: int, min_count: int = 1
) -> list[tuple[str, float]]:
    """Return at most `size` pieces with their log-probabilities, most probable first."""
    import numpy as np

    words, alphabet = _split_at_rare_characters(_most_frequent(words), size)
    pieces = alphabet + _seed_pieces(words, max(2, min_count), max(MAX_SEED_PIECES, size))
    lattice = Lattice.from_words(list(words), pieces)
    piece_lattice = Lattice.from_words(pieces, pieces, allow_whole_words=False)
    counts = np.array(list(words.values()), dtype=float)
    expected = np.bincount(lattice.piece, weights=counts[lattice.word], minlength=len(pieces))
    alive = np.ones(len(pieces), dtype=bool)
    scores = _log_probabilities(expected, alive)
    while True:
        for _ in range(EM_ITERATIONS):
            expected = lattice.expected_counts(scores, counts)
            scores = _log_probabilities(expected, alive)
        if alive.sum() <= size:
            break
        # differs: as in SentencePiece, the counts of the other pieces are assumed to be unchanged.
        with np.errstate(invalid="ignore"):  # -inf + inf, for pruned pieces
            loss = np.where(
                alive, expected * (scores - piece_lattice.best_log_probabilities(scores)), -np.inf
            )
        loss[: len(alphabet)] = np.inf  # every word must remain representable
        kept_count = max(size, int(KEPT_FRACTION * alive.sum()))
        alive = np.zeros_like(alive)
        alive[np.argsort(-loss, kind="stable")[:kept_count]] = True
        lattice, piece_lattice = lattice.without_pruned(alive), piece_lattice.without_pruned(alive)
        scores = _log_probabilities(expected, alive)
    # Six digits: further ones depend on the machine.
    final = [(pieces[n], round(float(scores[n]), 6)) for n in np.flatnonzero(alive)]
    return sorted(final, key=lambda entry: (-entry[1], entry[0]))


def _by_frequency(counts: Mapping[str, int]) -> list[str]:
    return sorted(counts, key=lambda key: (-counts[key], key))


def _most_frequent(words: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent words, sorted, so that no sum depends on the order of the text."""
    frequent: dict[str, int] = {}
    total = 0
    for word in _by_frequency(words):
        total += len(word)
        if frequent and total > MAX_CHARACTERS:
            break
        frequent[word] = words[word]
    return frequent


def _split_at_rare_characters(
    words: Mapping[str, int], size: int
) -> tuple[dict[str, int], list[str]]:
    """Return the words, cut at characters outside the alphabet, and the alphabet."""
    counts = Counter[str]()
    for word, count in words.items():
        for letter in word:
            counts[letter] += count
    alphabet = _by_frequency(counts)[:size]
    if len(alphabet) == len(counts):
        return dict(words), alphabet
    allowed = set(alphabet)
    words_cut = Counter[str]()
    for word, count in words.items():
        for is_allowed, part in groupby(word, allowed.__contains__):
            if is_allowed:
                words_cut["".join(part)] += count
    return dict(words_cut), alphabet


def _seed_pieces(words: Mapping[str, int], min_count: int, max_pieces: int) -> list[str]:
    """Return pieces of at least two characters and `min_count`, by the characters they cover.

    A piece can be frequent only if it is without its first, and without its last character.
    """
    covered: dict[str, int] = {}
    shorter: set[str] | None = None
    for length in range(2, MAX_PIECE_LENGTH + 1):
        counts = Counter[str]()
        for word, count in words.items():
            for start in range(len(word) - length + 1):
                piece = word[start : start + length]
                if shorter is None or (piece[:-1] in shorter and piece[1:] in shorter):
                    counts[piece] += count
        shorter = {piece for piece, count in counts.items() if count >= min_count}
        if not shorter:
            break
        covered.update({piece: counts[piece] * length for piece in shorter})
    return _by_frequency(covered)[:max_pieces]


def _log_probabilities(counts: "np.ndarray", alive: "np.ndarray") -> "np.ndarray":
    import numpy as np

    counts = np.maximum(counts, 1e-6)  # letters that never occur alone keep a probability
    return np.where(alive, np.log(counts) - np.log(counts[alive].sum()), -np.inf)


class LatticeColumn(NamedTuple):
    """The edges at the n-th positions of all words; `groups` are the starts of each position."""

    edges: "np.ndarray"
    groups: "np.ndarray"
    positions: "np.ndarray"


class Lattice(NamedTuple):
    """All segmentations of some words into pieces, as edges between positions.

    A word of n characters has n + 1 positions; all words are concatenated. A column is computed
    for all words at once.
    """

    start: "np.ndarray"
    end: "np.ndarray"
    piece: "np.ndarray"
    word: "np.ndarray"
    word_starts: "np.ndarray"
    """The first position of each word, and the end of the last word."""
    forward: list[LatticeColumn]
    backward: list[LatticeColumn]
    piece_count: int

    @classmethod
    def from_words(
        cls, words: list[str], pieces: list[str], *, allow_whole_words: bool = True
    ) -> "Lattice":
        """Build the lattice; `allow_whole_words=False` forbids longer words as single pieces."""
        import numpy as np

        piece_ids = {piece: piece_id for piece_id, piece in enumerate(pieces)}
        max_length = max(map(len, pieces))
        sizes = np.array([len(word) for word in words])
        word_starts = np.concatenate([[0], np.cumsum(sizes + 1)])
        edges: list[list[np.ndarray]] = []
        for size in np.unique(sizes):  # words of one length have the same possible cuts
            cuts = [
                (a, b) for a in range(size) for b in range(a + 1, min(a + max_length, size) + 1)
            ]
            same_length = np.flatnonzero(sizes == size)
            found_ids = array("i")
            for index in same_length:
                word = words[index]
                found_ids.extend([piece_ids.get(word[a:b], -1) for a, b in cuts])
            piece = (
                np.frombuffer(found_ids, dtype=np.int32).reshape(len(same_length), len(cuts)).copy()
            )
            if not allow_whole_words and size > 1:
                piece[:, [cut == (0, size) for cut in cuts]] = -1
            row, column = np.nonzero(piece >= 0)
            a, b = np.array(cuts)[column].T
            word = same_length[row]
            edges.append([word_starts[word] + a, word_starts[word] + b, piece[row, column], word])
        start, end, piece, word = map(np.concatenate, zip(*edges, strict=True))
        return cls._with_columns(start, end, piece, word, word_starts, len(pieces))

    def without_pruned(self, alive: "np.ndarray") -> "Lattice":
        """Return the lattice without the edges of pruned pieces."""
        is_kept = alive[self.piece]
        start, end, piece, word = (
            self.start[is_kept],
            self.end[is_kept],
            self.piece[is_kept],
            self.word[is_kept],
        )
        return self._with_columns(start, end, piece, word, self.word_starts, self.piece_count)

    @classmethod
    def _with_columns(
        cls,
        start: "np.ndarray",
        end: "np.ndarray",
        piece: "np.ndarray",
        word: "np.ndarray",
        word_starts: "np.ndarray",
        piece_count: int,
    ) -> "Lattice":
        forward = _lattice_columns(end - word_starts[word], end)
        backward = _lattice_columns(start - word_starts[word], start)[::-1]
        return cls(start, end, piece, word, word_starts, forward, backward, piece_count)

    def expected_counts(self, scores: "np.ndarray", counts: "np.ndarray") -> "np.ndarray":
        """Return the expected count of each piece over all segmentations (the E step)."""
        import numpy as np

        gain = scores[self.piece]
        before = np.zeros(self.word_starts[-1])
        for edges, groups, positions in self.forward:
            before[positions] = _log_sum(before[self.start[edges]] + gain[edges], groups)
        after = np.zeros(self.word_starts[-1])
        for edges, groups, positions in self.backward:
            after[positions] = _log_sum(after[self.end[edges]] + gain[edges], groups)
        totals = before[self.word_starts[1:] - 1]
        share = np.exp(before[self.start] + gain + after[self.end] - totals[self.word])
        return np.bincount(
            self.piece, weights=share * counts[self.word], minlength=self.piece_count
        )

    def best_log_probabilities(self, scores: "np.ndarray") -> "np.ndarray":
        """Return the log-probability of the best segmentation of each word."""
        import numpy as np

        gain = scores[self.piece]
        before = np.zeros(self.word_starts[-1])
        for edges, groups, positions in self.forward:
            before[positions] = np.maximum.reduceat(before[self.start[edges]] + gain[edges], groups)
        return before[self.word_starts[1:] - 1]


def _lattice_columns(column: "np.ndarray", position: "np.ndarray") -> list[LatticeColumn]:
    import numpy as np

    order = np.lexsort((position, column))
    bounds = np.flatnonzero(np.diff(column[order])) + 1
    columns = []
    for edges in np.split(order, bounds):
        meeting = position[edges]
        groups = np.flatnonzero(np.diff(meeting, prepend=-1))
        columns.append(LatticeColumn(edges, groups, meeting[groups]))
    return columns


def _log_sum(values: "np.ndarray", groups: "np.ndarray") -> "np.ndarray":
    import numpy as np

    top = np.maximum.reduceat(values, groups)
    spread = np.repeat(top, np.diff(groups, append=len(values)))
    return top + np.log(np.add.reduceat(np.exp(values - spread), groups))
