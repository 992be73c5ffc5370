"""Links of people, choices and searches beside a map: what they say, and that they are kept."""

import numpy as np
import pytest

from regard.metric.links import Gold
from regard.view.map import AttentionMap
from regard.view.more import Choice, More, Node
from regard.view.page import side_by_side
from regard.view.picture import picture

# rows: "a", "dog" in two pieces, the end; columns: "ein", "<unk>", the end
WEIGHTS = np.array(
    [
        [[0.7, 0.2, 0.1], [0.1, 0.4, 0.5], [0.3, 0.6, 0.1], [0.0, 0.0, 1.0]],
        [[0.1, 0.8, 0.1], [0.2, 0.8, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]],
    ],
    np.float32,
)
QUERIES, KEYS = ["▁a", "▁d", "og", "</s>"], ["▁ein", "<unk>", "</s>"]
GOLD = Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))
CHOICES = tuple((Choice("x", 0.6), Choice("y", 0.4)) for _ in QUERIES)
TREE = (
    Node(-1, "▁a", -0.5, best=True),
    Node(-1, "▁b", -1.5, best=False),
    Node(0, "▁d", -2.0, best=True),
)
MORE = More(GOLD, CHOICES, TREE)


def made(more: More = MORE) -> AttentionMap:
    return AttentionMap({"one": WEIGHTS}, QUERIES, KEYS, title="t", more=more)


def test_agreement_with_people():
    """By hand: the first head links a-ein, dog-<unk>; the second a-<unk>, dog-<unk>."""
    [[first, second]] = made().agreements()
    assert (first.guessed, first.guessed_sure, first.guessed_possible) == (2, 1, 2)
    assert first.aer == 0
    assert (second.guessed, second.guessed_sure, second.guessed_possible) == (2, 0, 1)
    assert second.aer == pytest.approx(1 - 1 / 3)
    assert made().merged().agreements() == [[first, second]]


def test_no_links_no_agreement():
    with pytest.raises(ValueError, match="gold links are missing"):
        made(More()).agreements()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (More(Gold(frozenset(), frozenset({(2, 0)}))), "gold link 2-0: there are 2 words that"),
        (More(Gold(frozenset(), frozenset({(0, 2)}))), "and 2 that look, counted from 0"),
        (More(choices=CHOICES[1:]), "choices of 3 steps for 4 queries"),
    ],
)
def test_what_does_not_fit(more, says):
    with pytest.raises(ValueError, match=says):
        made(more)


def test_a_tree_grows_from_its_root():
    with pytest.raises(ValueError, match="node 0 comes before its parent 1"):
        More(tree=(Node(1, "a", 0.0, best=True), Node(-1, "b", 0.0, best=True)))


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_kept_in_files(ending, tmp_path):
    made().save(tmp_path / f"map.{ending}")
    assert AttentionMap.load(tmp_path / f"map.{ending}").more == MORE


def test_kept_by_what_is_made_of_it():
    assert made().pick(1, 2).more == MORE
    assert made().merged().more == More(GOLD, (), TREE)  # choices are of pieces


def test_frames_are_in_the_picture():
    plain = made(More()).pick(head=1)
    assert picture(made().pick(head=1), "svg").count(b"#d55e00") >= 2
    assert b"#d55e00" not in picture(plain, "svg")


def test_side_by_side_is_one_page():
    whole = side_by_side([("<b>one</b>", made()), ("two", made(More()))])
    assert whole.count("<iframe") == 2
    assert "<b>one" not in whole
    assert "<script" not in whole  # they are inside the frames, as text
