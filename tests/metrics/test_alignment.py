"""Tests of alignment metrics, symmetrization (against Moses' symal), and links from weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics.alignment import (
    SYMMETRIZATIONS,
    agreement,
    agreement_from_files,
    best_links,
    flipped,
    grow_diag,
    grow_diag_final,
    grow_diag_final_and,
    strong_links,
    word_weights,
)
from regard.metrics.alignment_files import GoldAlignment

GOLD = [
    GoldAlignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2), (2, 2)})),
    GoldAlignment(frozenset({(0, 1)}), frozenset({(0, 1)})),
]
PREDICTED = [{(0, 0), (1, 2), (3, 3)}, {(0, 1), (1, 0)}]


def test_known_agreement():
    """|A| = 5, |S| = 3, |A n S| = 2, |A n P| = 3."""
    result = agreement(PREDICTED, GOLD)
    assert result.precision == 3 / 5
    assert result.recall == 2 / 3
    assert result.aer == pytest.approx(1 - (2 + 3) / (5 + 3))
    assert result.f1 == pytest.approx(2 * (3 / 5) * (2 / 3) / (3 / 5 + 2 / 3))


def test_gold_agrees_with_itself():
    for part in ("sure", "possible"):
        result = agreement([getattr(gold, part) for gold in GOLD], GOLD)
        assert result.aer == 0.0
        assert (result.precision, result.recall, result.f1) == (1.0, 1.0, 1.0)


def test_sure_links_are_possible():
    """Sure links count as possible even if the gold file does not list them."""
    assert agreement([{(0, 0)}], [GoldAlignment(frozenset({(0, 0)}), frozenset())]).aer == 0.0


def test_empty_predictions_and_empty_gold():
    empty_gold = GoldAlignment(frozenset(), frozenset())
    assert agreement([set()], GOLD[1:]).aer == 1.0
    assert agreement([set()], GOLD[1:]).precision == agreement([set()], GOLD[1:]).f1 == 0.0
    assert agreement([set()], [empty_gold]).aer == 0.0
    assert agreement([set()], [empty_gold]).f1 == 1.0
    assert agreement([{(0, 0)}], [empty_gold]).aer == 1.0
    assert agreement([{(0, 0)}], [empty_gold]).precision == 0.0


def test_different_numbers():
    with pytest.raises(ValueError, match="1 predicted alignments, but 2 gold ones"):
        agreement([set()], GOLD)


def test_files(tmp_path):
    predicted_path, gold_path = tmp_path / "guess", tmp_path / "gold"
    predicted_path.write_text("0-0 1-2 3-3\n0-1 1-0\n")
    gold_path.write_text("1-1 2-2 2p3 3p3\n1-2\n")
    assert agreement_from_files(predicted_path, gold_path, gold_base=1) == agreement(
        PREDICTED, GOLD
    )
    predicted_path.write_text("0-0\n")
    with pytest.raises(ValueError) as error:
        agreement_from_files(predicted_path, gold_path)
    message = (
        f"{predicted_path} has 1 lines, but {gold_path} has 2 sentences; "
        "the first without a partner is 2"
    )
    assert str(error.value) == message


# Rows are source words, columns target words; #: in both, f: forward only, b: backward only
#
#        0 1 2 3
#     0  # . . .
#     1  . b # .
#     2  . . . f
#     3  b . . .
FORWARD = frozenset({(0, 0), (1, 2), (2, 3)})
BACKWARD = frozenset({(0, 0), (1, 2), (1, 1), (3, 0)})


def test_known_symmetrizations():
    intersection = {(0, 0), (1, 2)}
    # (1, 1) and (2, 3) are neighbors of (1, 2), and their target words 1 and 3 are free.
    grown = intersection | {(1, 1), (2, 3)}
    results = {name: symmetrize(FORWARD, BACKWARD) for name, symmetrize in SYMMETRIZATIONS.items()}
    assert results == {
        "intersection": intersection,
        "union": FORWARD | BACKWARD,
        "grow_diag": grown,
        "grow_diag_final": grown | {(3, 0)},  # no neighbor, but source word 3 is free
        "grow_diag_final_and": grown,  # target word 0 is not free
    }


def test_final_and_requires_two_free_words():
    forward, backward = frozenset({(0, 0), (5, 5)}), frozenset({(0, 0), (3, 0), (7, 3)})
    assert grow_diag(forward, backward) == {(0, 0)}
    assert grow_diag_final_and(forward, backward) == {(0, 0), (5, 5), (7, 3)}
    assert grow_diag_final(forward, backward) == {(0, 0), (5, 5), (7, 3), (3, 0)}


def test_links_of_the_first_direction_come_first():
    """(2, 2) and (2, 4) share a source word, which goes to the first direction."""
    forward, backward = frozenset({(2, 4)}), frozenset({(2, 2)})
    assert grow_diag_final_and(forward, backward) == {(2, 4)}
    assert grow_diag_final_and(backward, forward) == {(2, 2)}


def symal_reference(forward, backward, final, require_both_free):
    """Symmetrize by an independent implementation of Moses' symal, with tables instead of sets."""
    size = 8
    marks = np.zeros((size, size), dtype=int)  # target, source: 3 in both, 1 first, 2 second
    for i, j in forward:
        marks[j, i] += 1
    for i, j in backward:
        marks[j, i] += 2
    kept = marks == 3
    offsets = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    added = True
    while added:
        added = False
        for j in range(size):
            for i in range(size):
                for dj, di in offsets if kept[j, i] else ():
                    y, x = j + dj, i + di
                    if not (0 <= y < size and 0 <= x < size) or marks[y, x] == 0:
                        continue
                    if not (kept[y].any() and kept[:, x].any()):
                        kept[y, x] = added = True
    for direction in (1, 2) if final else ():
        for j in range(size):
            for i in range(size):
                rows, columns = kept[j].any(), kept[:, i].any()
                is_free = not (rows or columns) if require_both_free else not (rows and columns)
                if marks[j, i] == direction and is_free:
                    kept[j, i] = True
    return {(int(i), int(j)) for j, i in np.argwhere(kept)}


links = st.frozensets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14)


@given(links, links)
def test_symmetrization_matches_symal(forward, backward):
    assert grow_diag(forward, backward) == symal_reference(
        forward, backward, final=False, require_both_free=False
    )
    assert grow_diag_final(forward, backward) == symal_reference(
        forward, backward, final=True, require_both_free=False
    )
    assert grow_diag_final_and(forward, backward) == symal_reference(
        forward, backward, final=True, require_both_free=True
    )


@given(links, links)
def test_symmetrizations_are_between_intersection_and_union(forward, backward):
    grown = [symmetrize(forward, backward) for symmetrize in SYMMETRIZATIONS.values()]
    intersection, union, diag, final, final_and = grown
    assert intersection <= diag <= final_and
    assert diag <= final <= union
    assert final_and <= union
    assert all(symmetrize(forward, forward) == forward for symmetrize in SYMMETRIZATIONS.values())


def test_flipped():
    assert flipped([(0, 1), (2, 2)]) == {(1, 0), (2, 2)}


def test_word_weights():
    """Weights are summed over source pieces and averaged over target pieces."""
    weights = [
        [0.1, 0.2, 0.6, 0.1],
        [0.3, 0.1, 0.2, 0.4],
        [0.0, 0.5, 0.0, 0.5],
        [0.2, 0.2, 0.2, 0.4],
    ]
    words = word_weights(weights, [0, 0, 1, None], [0, 1, 1, None])
    assert words.tolist() == [pytest.approx([0.2, 0.55]), pytest.approx([0.0, 0.5])]
    assert best_links(words) == {(1, 0), (1, 1)}
    assert strong_links(words, 0.2) == {(0, 0), (1, 0), (1, 1)}


def test_words_without_pieces():
    """Source word 1 and target word 0 have no pieces, so their weights are 0."""
    words = word_weights(np.ones((1, 2)), [1], [0, 2])
    assert words.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    assert best_links(words) == {(0, 1)}  # of equal weights, the first


def test_no_words():
    assert word_weights(np.ones((1, 1)), [None], [None]).shape == (0, 0)
    assert best_links(np.zeros((0, 0))) == frozenset()
    assert best_links(np.zeros((2, 0))) == frozenset()
    assert strong_links(np.zeros((2, 0)), 0.5) == frozenset()


def test_words_of_one_piece_keep_their_weights():
    weights = np.random.default_rng(0).random((4, 5))
    assert np.array_equal(word_weights(weights, range(4), range(5)), weights)


def test_bad_weights():
    with pytest.raises(ValueError, match=r"\[1 target pieces, 3 source pieces\], not \(1, 2\)"):
        word_weights([[0.5, 0.5]], [0], [0, 1, 2])
    with pytest.raises(ValueError, match="threshold must be positive"):
        strong_links([[0.5]], 0.0)
