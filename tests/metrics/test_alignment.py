"""Alignments: errors by hand, two directions into one beside another program's way, weights."""

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
GUESS = [{(0, 0), (1, 2), (3, 3)}, {(0, 1), (1, 0)}]


def test_agreement_by_hand():
    """|A| = 5, |S| = 3, |A n S| = 2, |A n P| = 3."""
    found = agreement(GUESS, GOLD)
    assert found.precision == 3 / 5
    assert found.recall == 2 / 3
    assert found.aer == pytest.approx(1 - (2 + 3) / (5 + 3))
    assert found.f1 == pytest.approx(2 * (3 / 5) * (2 / 3) / (3 / 5 + 2 / 3))


def test_gold_beside_itself():
    for part in ("sure", "possible"):
        found = agreement([getattr(gold, part) for gold in GOLD], GOLD)
        assert found.aer == 0.0
        assert (found.precision, found.recall, found.f1) == (1.0, 1.0, 1.0)


def test_sure_links_are_possible():
    """Even where the gold forgot to say so."""
    assert agreement([{(0, 0)}], [GoldAlignment(frozenset({(0, 0)}), frozenset())]).aer == 0.0


def test_nothing_guessed_and_nothing_to_guess():
    nothing = GoldAlignment(frozenset(), frozenset())
    assert agreement([set()], GOLD[1:]).aer == 1.0
    assert agreement([set()], GOLD[1:]).precision == agreement([set()], GOLD[1:]).f1 == 0.0
    assert agreement([set()], [nothing]).aer == 0.0
    assert agreement([set()], [nothing]).f1 == 1.0
    assert agreement([{(0, 0)}], [nothing]).aer == 1.0
    assert agreement([{(0, 0)}], [nothing]).precision == 0.0


def test_different_numbers():
    with pytest.raises(ValueError, match="guessed are 1 alignments, but gold 2"):
        agreement([set()], GOLD)


def test_files(tmp_path):
    guess, gold = tmp_path / "guess", tmp_path / "gold"
    guess.write_text("0-0 1-2 3-3\n0-1 1-0\n")
    gold.write_text("1-1 2-2 2p3 3p3\n1-2\n")
    assert agreement_from_files(guess, gold, gold_base=1) == agreement(GUESS, GOLD)
    guess.write_text("0-0\n")
    with pytest.raises(ValueError) as error:
        agreement_from_files(guess, gold)
    says = f"{guess} has 1 lines, but {gold} 2 sentences: sentence 2 has no partner"
    assert str(error.value) == says


# Source words down, target words across; #: in both, f: forward only, b: backward only
#
#        0 1 2 3
#     0  # . . .
#     1  . b # .
#     2  . . . f
#     3  b . . .
FORWARD = frozenset({(0, 0), (1, 2), (2, 3)})
BACKWARD = frozenset({(0, 0), (1, 2), (1, 1), (3, 0)})


def test_symmetrisation_by_hand():
    both = {(0, 0), (1, 2)}
    # (1, 1) is beside (1, 2), and target word 1 is free; (2, 3) is at its corner, and 3 is free
    grown = both | {(1, 1), (2, 3)}
    made = {name: how(FORWARD, BACKWARD) for name, how in SYMMETRIZATIONS.items()}
    assert made == {
        "intersection": both,
        "union": FORWARD | BACKWARD,
        "grow_diag": grown,
        "grow_diag_final": grown | {(3, 0)},  # it touches none, but source word 3 is free
        "grow_diag_final_and": grown,  # target word 0 is not
    }


def test_final_and_wants_both_words_free():
    one, other = frozenset({(0, 0), (5, 5)}), frozenset({(0, 0), (3, 0), (7, 3)})
    assert grow_diag(one, other) == {(0, 0)}
    assert grow_diag_final_and(one, other) == {(0, 0), (5, 5), (7, 3)}
    assert grow_diag_final(one, other) == {(0, 0), (5, 5), (7, 3), (3, 0)}


def test_the_first_direction_goes_first():
    """(2, 2) and (2, 4) share a source word: whoever comes first takes it."""
    one, other = frozenset({(2, 4)}), frozenset({(2, 2)})
    assert grow_diag_final_and(one, other) == {(2, 4)}
    assert grow_diag_final_and(other, one) == {(2, 2)}


def tables(one, other, final, both):
    """The way of Moses' symal, written anew: counters and a table of marks, not sets of links."""
    size = 8
    marks = np.zeros((size, size), dtype=int)  # target, source: 3 in both, 1 first, 2 second
    for i, j in one:
        marks[j, i] += 1
    for i, j in other:
        marks[j, i] += 2
    kept = marks == 3
    around = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    added = True
    while added:
        added = False
        for j in range(size):
            for i in range(size):
                for dj, di in around if kept[j, i] else ():
                    y, x = j + dj, i + di
                    if not (0 <= y < size and 0 <= x < size) or marks[y, x] == 0:
                        continue
                    if not (kept[y].any() and kept[:, x].any()):
                        kept[y, x] = added = True
    for direction in (1, 2) if final else ():
        for j in range(size):
            for i in range(size):
                rows, columns = kept[j].any(), kept[:, i].any()
                free = not (rows or columns) if both else not (rows and columns)
                if marks[j, i] == direction and free:
                    kept[j, i] = True
    return {(int(i), int(j)) for j, i in np.argwhere(kept)}


links = st.frozensets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14)


@given(links, links)
def test_symmetrisation_beside_tables(one, other):
    assert grow_diag(one, other) == tables(one, other, final=False, both=False)
    assert grow_diag_final(one, other) == tables(one, other, final=True, both=False)
    assert grow_diag_final_and(one, other) == tables(one, other, final=True, both=True)


@given(links, links)
def test_symmetrisations_lie_between_intersection_and_union(one, other):
    grown = [how(one, other) for how in SYMMETRIZATIONS.values()]
    both, either, diag, final, final_and = grown
    assert both <= diag <= final_and
    assert diag <= final <= either
    assert final_and <= either
    assert all(how(one, one) == one for how in SYMMETRIZATIONS.values())


def test_flipped():
    assert flipped([(0, 1), (2, 2)]) == {(1, 0), (2, 2)}


def test_pieces_into_words():
    """A word is looked at by the sum of its pieces, and looks by their mean."""
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
    """Word 1 of the source and word 0 of the target have none: they look and are looked at not."""
    words = word_weights(np.ones((1, 2)), [1], [0, 2])
    assert words.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    assert best_links(words) == {(0, 1)}  # among equals, the first


def test_no_words():
    assert word_weights(np.ones((1, 1)), [None], [None]).shape == (0, 0)
    assert best_links(np.zeros((0, 0))) == frozenset()
    assert best_links(np.zeros((2, 0))) == frozenset()
    assert strong_links(np.zeros((2, 0)), 0.5) == frozenset()


def test_a_whole_that_is_one_piece_a_word_is_left_alone():
    weights = np.random.default_rng(0).random((4, 5))
    assert np.array_equal(word_weights(weights, range(4), range(5)), weights)


def test_wrong_weights():
    with pytest.raises(ValueError, match=r"weights are \(1, 2\), but there are 1 target and 3"):
        word_weights([[0.5, 0.5]], [0], [0, 1, 2])
    with pytest.raises(ValueError, match="threshold must be positive"):
        strong_links([[0.5]], 0.0)
