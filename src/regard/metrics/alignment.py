"""Word alignments: metrics, symmetrization, and links from attention weights."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Num

from regard.errors import InputError
from regard.metrics.alignment_files import GoldAlignment, Link, Links, read_gold, read_links


@dataclass(frozen=True)
class Agreement:
    """Counts over several sentences, and the metrics of Och & Ney 2003.

        precision = |A n P| / |A|        recall = |A n S| / |S|
        AER = 1 - (|A n S| + |A n P|) / (|A| + |S|)

    A: predicted links   S: sure links   P: possible links, including the sure ones
    """

    predicted: int
    sure: int
    predicted_sure: int  # |A n S|
    predicted_possible: int  # |A n P|

    @property
    def aer(self) -> float:
        """Return the alignment error rate: 0 if all sure links and only possible ones are in A."""
        total = self.predicted + self.sure
        return 1 - (self.predicted_sure + self.predicted_possible) / total if total else 0.0

    @property
    def precision(self) -> float:
        """Return |A n P| / |A|; without predictions, 1 if there are no sure links, else 0."""
        return self.predicted_possible / self.predicted if self.predicted else float(not self.sure)

    @property
    def recall(self) -> float:
        return self.predicted_sure / self.sure if self.sure else 1.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def agreement(predicted: Sequence[Iterable[Link]], gold: Sequence[GoldAlignment]) -> Agreement:
    """Compare predicted with gold alignments; counts are summed over all sentences."""
    if len(predicted) != len(gold):
        raise InputError(
            f"{len(predicted)} predicted alignments, but {len(gold)} gold ones; give one each"
        )
    counts = [0, 0, 0, 0]
    for links, (sure, possible) in zip(predicted, gold, strict=True):
        predicted_links = frozenset(links)
        link_sets = (
            predicted_links,
            sure,
            predicted_links & sure,
            predicted_links & (possible | sure),
        )
        counts = [count + len(link_set) for count, link_set in zip(counts, link_sets, strict=True)]
    return Agreement(*counts)


def agreement_from_files(
    predicted: str | Path, gold: str | Path, *, base: int = 0, gold_base: int = 0
) -> Agreement:
    """Compare a file of alignments with a gold file; words are counted from `base`, `gold_base`."""
    links = read_links(predicted, base)
    golds = read_gold(gold, gold_base)
    if len(links) != len(golds):
        raise InputError(
            f"{predicted} has {len(links)} lines, but {gold} has {len(golds)} sentences; "
            f"the first without a partner is {min(len(links), len(golds)) + 1}"
        )
    return agreement(links, golds)


def intersection(forward: Links, backward: Links) -> Links:
    """Return the links of both directions: high precision, low recall."""
    return forward & backward


def union(forward: Links, backward: Links) -> Links:
    """Return the links of either direction: high recall, low precision."""
    return forward | backward


def grow_diag(forward: Links, backward: Links) -> Links:
    """Grow the intersection by neighbors of its links, also diagonal ones, from the union.

    A neighbor is added if its source or its target word has no link yet (Koehn et al. 2003). The
    order is that of Moses' symal: by target word, then source word; new links count at once.
    """
    grown, candidates = set(forward & backward), sorted(forward | backward, key=by_target)
    previous_size = -1
    while len(grown) > previous_size:
        previous_size = len(grown)
        for i, j in candidates:
            if (i, j) in grown:
                for target_step, source_step in NEIGHBOR_OFFSETS:
                    neighbor = i + source_step, j + target_step
                    if neighbor in forward or neighbor in backward:
                        add_if(neighbor, grown, is_any_word_free)
    return frozenset(grown)


def grow_diag_final(forward: Links, backward: Links) -> Links:
    """Apply `grow_diag`, then add links of either direction with at least one free word."""
    return with_final_links(forward, backward, is_any_word_free)


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """Apply `grow_diag`, then add links of either direction with two free words."""
    return with_final_links(forward, backward, are_both_words_free)


# Offsets of neighbors in target words and source words, in the order of symal
NEIGHBOR_OFFSETS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

# The first argument is from the model that translates source to target (links of each target
# word), the second from the reverse model. Both contain links as (source, target).
SYMMETRIZATIONS: dict[str, Callable[[Links, Links], Links]] = {
    "intersection": intersection,
    "union": union,
    "grow_diag": grow_diag,
    "grow_diag_final": grow_diag_final,
    "grow_diag_final_and": grow_diag_final_and,
}


def with_final_links(
    forward: Links, backward: Links, can_add: Callable[[Link, set[Link]], bool]
) -> Links:
    grown = set(grow_diag(forward, backward))
    for direction in (forward, backward):
        for link in sorted(direction, key=by_target):
            add_if(link, grown, can_add)
    return frozenset(grown)


def by_target(link: Link) -> Link:
    return link[1], link[0]


def is_any_word_free(link: Link, links: set[Link]) -> bool:
    return all(i != link[0] for i, _ in links) or all(j != link[1] for _, j in links)


def are_both_words_free(link: Link, links: set[Link]) -> bool:
    return all(i != link[0] and j != link[1] for i, j in links)


def add_if(link: Link, links: set[Link], can_add: Callable[[Link, set[Link]], bool]) -> None:
    if can_add(link, links):
        links.add(link)


def flipped(links: Iterable[Link]) -> Links:
    """Exchange source and target of all links."""
    return frozenset((j, i) for i, j in links)


def word_weights(
    weights: Num[np.ndarray, "t s"] | Sequence[Sequence[float]],
    target_words: Sequence[int | None],
    source_words: Sequence[int | None],
) -> Float[np.ndarray, "m n"]:
    """Convert attention weights between pieces [target, source] to weights between words.

    Weights are summed over the pieces of a source word and averaged over those of a target word.
    Words of pieces are those of `Encoding.words`; None (for example, the end) is no word.
    """
    piece_weights = np.asarray(weights, dtype=np.float64)
    if piece_weights.shape != (len(target_words), len(source_words)):
        raise InputError(
            f"weights must be [{len(target_words)} target pieces, {len(source_words)} source "
            f"pieces], not {piece_weights.shape}"
        )
    target_membership, source_membership = (
        membership_matrix(target_words),
        membership_matrix(source_words),
    )
    sizes = target_membership.sum(1, keepdims=True)
    return target_membership @ piece_weights @ source_membership.T / np.maximum(sizes, 1)


def membership_matrix(words: Sequence[int | None]) -> Float[np.ndarray, "words pieces"]:
    """Return a matrix with 1 where a piece belongs to a word."""
    count = 1 + max((word for word in words if word is not None), default=-1)
    matrix = np.zeros((count, len(words)))
    for piece, word in enumerate(words):
        if word is not None:
            matrix[word, piece] = 1.0
    return matrix


def best_links(weights: Num[np.ndarray, "m n"] | Sequence[Sequence[float]]) -> Links:
    """Link each target word to the source word with the largest weight, if that is positive."""
    matrix = np.asarray(weights, dtype=np.float64)
    if not matrix.size:
        return frozenset()
    return frozenset((int(i), j) for j, i in enumerate(matrix.argmax(1)) if matrix[j, i] > 0)


def strong_links(
    weights: Num[np.ndarray, "m n"] | Sequence[Sequence[float]], threshold: float
) -> Links:
    """Link each target word to all source words with at least this weight."""
    if not threshold > 0:
        raise InputError(f"threshold must be positive, not {threshold}")
    matrix = np.asarray(weights, dtype=np.float64)
    return frozenset((int(i), int(j)) for j, i in np.argwhere(matrix >= threshold))
