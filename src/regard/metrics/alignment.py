"""Word alignments: how good they are, two directions into one, and links from attention weights."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Num

from regard.metrics.alignment_files import GoldAlignment, Link, Links, read_gold, read_links


@dataclass(frozen=True)
class Agreement:
    """Counts over any number of sentences, and what follows from them.

        precision = |A n P| / |A|        recall = |A n S| / |S|
        AER = 1 - (|A n S| + |A n P|) / (|A| + |S|)                     Och & Ney 2003

    A: guessed links   S: sure links   P: possible links, the sure among them
    """

    predicted: int
    sure: int
    predicted_sure: int  # |A n S|
    predicted_possible: int  # |A n P|

    @property
    def aer(self) -> float:
        """0 when all sure links and none but possible ones were guessed."""
        total = self.predicted + self.sure
        return 1 - (self.predicted_sure + self.predicted_possible) / total if total else 0.0

    @property
    def precision(self) -> float:
        """Nothing guessed is right only if there was nothing to guess."""
        return self.predicted_possible / self.predicted if self.predicted else float(not self.sure)

    @property
    def recall(self) -> float:
        return self.predicted_sure / self.sure if self.sure else 1.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def agreement(predicted: Sequence[Iterable[Link]], gold: Sequence[GoldAlignment]) -> Agreement:
    """Guessed alignments beside the gold ones, summed over all sentences."""
    if len(predicted) != len(gold):
        raise ValueError(f"guessed are {len(predicted)} alignments, but gold {len(gold)}")
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
    """A file of alignments beside a gold file; `base` is the number of the first word in each."""
    links = read_links(predicted, base)
    golds = read_gold(gold, gold_base)
    if len(links) != len(golds):
        raise ValueError(
            f"{predicted} has {len(links)} lines, but {gold} {len(golds)} sentences: "
            f"sentence {min(len(links), len(golds)) + 1} has no partner"
        )
    return agreement(links, golds)


def intersection(forward: Links, backward: Links) -> Links:
    """Links of both directions: few, and mostly right."""
    return forward & backward


def union(forward: Links, backward: Links) -> Links:
    """Links of either direction."""
    return forward | backward


def grow_diag(forward: Links, backward: Links) -> Links:
    """The intersection, grown by neighbours of its links (diagonal ones too) in the union.

    A neighbour joins if its source or its target word has no link yet (Koehn et al. 2003; the order
    is that of Moses' symal: by target word, then source word; newcomers count at once).
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
    """`grow_diag`, then links of the first and of the second that have a word without any."""
    return with_final_links(forward, backward, is_any_word_free)


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """`grow_diag`, then links of the first and of the second both of whose words have none."""
    return with_final_links(forward, backward, are_both_words_free)


# Where a neighbour is, in target words and source words, in the order of symal
NEIGHBOR_OFFSETS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

# Two directions into one. The first is of the model that translates source into target (each target
# word has looked for its source words), the second of the other model; both as (source, target).
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
    """Of the other direction: source is target."""
    return frozenset((j, i) for i, j in links)


def word_weights(
    weights: Num[np.ndarray, "t s"] | Sequence[Sequence[float]],
    target_words: Sequence[int | None],
    source_words: Sequence[int | None],
) -> Float[np.ndarray, "m n"]:
    """Weights between pieces [target, source] into weights between words.

    A word is looked at as much as its pieces together, and looks as its pieces do on average. The
    words of the pieces are as in `Encoding.words`; None (the end, for one) belongs to no word.
    """
    piece_weights = np.asarray(weights, dtype=np.float64)
    if piece_weights.shape != (len(target_words), len(source_words)):
        raise ValueError(
            f"weights are {piece_weights.shape}, but there are {len(target_words)} target and "
            f"{len(source_words)} source pieces"
        )
    target_membership, source_membership = (
        membership_matrix(target_words),
        membership_matrix(source_words),
    )
    sizes = target_membership.sum(1, keepdims=True)
    return target_membership @ piece_weights @ source_membership.T / np.maximum(sizes, 1)


def membership_matrix(words: Sequence[int | None]) -> Float[np.ndarray, "words pieces"]:
    """1 where a piece is of a word."""
    count = 1 + max((word for word in words if word is not None), default=-1)
    matrix = np.zeros((count, len(words)))
    for piece, word in enumerate(words):
        if word is not None:
            matrix[word, piece] = 1.0
    return matrix


def best_links(weights: Num[np.ndarray, "m n"] | Sequence[Sequence[float]]) -> Links:
    """Each target word with the source word that it looked at most; none if it looked at none."""
    matrix = np.asarray(weights, dtype=np.float64)
    if not matrix.size:
        return frozenset()
    return frozenset((int(i), j) for j, i in enumerate(matrix.argmax(1)) if matrix[j, i] > 0)


def strong_links(
    weights: Num[np.ndarray, "m n"] | Sequence[Sequence[float]], threshold: float
) -> Links:
    """Each target word with every source word that it looked at with at least this weight."""
    if not threshold > 0:
        raise ValueError(f"threshold must be positive, not {threshold}")
    matrix = np.asarray(weights, dtype=np.float64)
    return frozenset((int(i), int(j)) for j, i in np.argwhere(matrix >= threshold))
