"""Links of people, choices and searches beside a map: what they say, and that they are kept."""

import re

import numpy as np
import pytest

from regard.metrics.alignment_files import GoldAlignment
from regard.view.annotations import MapAnnotations, SearchTreeNode, TokenChoice
from regard.view.attention_map import AttentionMap
from regard.view.page import side_by_side_page
from regard.view.picture import picture_bytes

# rows: "a", "dog" in two pieces, the end; columns: "ein", "<unk>", the end
WEIGHTS = np.array(
    [
        [[0.7, 0.2, 0.1], [0.1, 0.4, 0.5], [0.3, 0.6, 0.1], [0.0, 0.0, 1.0]],
        [[0.1, 0.8, 0.1], [0.2, 0.8, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]],
    ],
    np.float32,
)
QUERIES, KEYS = ["▁a", "▁d", "og", "</s>"], ["▁ein", "<unk>", "</s>"]
GOLD = GoldAlignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))
CHOICES = tuple((TokenChoice("x", 0.6), TokenChoice("y", 0.4)) for _ in QUERIES)
TREE = (
    SearchTreeNode(-1, "▁a", -0.5, is_on_best_path=True),
    SearchTreeNode(-1, "▁b", -1.5, is_on_best_path=False),
    SearchTreeNode(0, "▁d", -2.0, is_on_best_path=True),
)
MORE = MapAnnotations(GOLD, CHOICES, TREE)


def made(more: MapAnnotations = MORE) -> AttentionMap:
    return AttentionMap(
        {"one": WEIGHTS},
        QUERIES,
        KEYS,
        word_ids=([0, 1, 1, 2], [0, 1, 2]),
        title="t",
        annotations=more,
    )


def test_agreement_with_people():
    """By hand: the first head links a-ein, dog-<unk>; the second a-<unk>, dog-<unk>."""
    [[first, second]] = made().agreements()
    assert (first.predicted, first.predicted_sure, first.predicted_possible) == (2, 1, 2)
    assert first.aer == 0
    assert (second.predicted, second.predicted_sure, second.predicted_possible) == (2, 0, 1)
    assert second.aer == pytest.approx(1 - 1 / 3)
    assert made().merge_subwords().agreements() == [[first, second]]


def test_no_links_no_agreement():
    with pytest.raises(ValueError, match="gold links are missing"):
        made(MapAnnotations()).agreements()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            MapAnnotations(GoldAlignment(frozenset(), frozenset({(2, 0)}))),
            "gold link 2-0: there are 2 source words",
        ),
        (
            MapAnnotations(GoldAlignment(frozenset(), frozenset({(0, 2)}))),
            "and 2 target words; count from 0",
        ),
        (MapAnnotations(choices=CHOICES[1:]), "choices has 3 steps for 4 queries"),
    ],
)
def test_what_does_not_fit(more, says):
    with pytest.raises(ValueError, match=says):
        made(more)


def test_a_tree_grows_from_its_root():
    with pytest.raises(ValueError, match="node 0 comes before its parent 1"):
        MapAnnotations(
            tree=(
                SearchTreeNode(1, "a", 0.0, is_on_best_path=True),
                SearchTreeNode(-1, "b", 0.0, is_on_best_path=True),
            )
        )


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_kept_in_files(ending, tmp_path):
    made().save(tmp_path / f"map.{ending}")
    assert AttentionMap.load(tmp_path / f"map.{ending}").annotations == MORE


def test_kept_by_what_is_made_of_it():
    assert made().pick(1, 2).annotations == MORE
    assert made().merge_subwords().annotations == MapAnnotations(
        GOLD, (), TREE
    )  # choices are of pieces


def test_frames_are_in_the_picture():
    plain = made(MapAnnotations()).pick(head=1)
    assert picture_bytes(made().pick(head=1), "svg").count(b"#d55e00") >= 2
    assert b"#d55e00" not in picture_bytes(plain, "svg")


def test_side_by_side_is_one_page():
    whole = side_by_side_page([("<b>one</b>", made()), ("two", made(MapAnnotations()))])
    assert whole.count('<div class="map">') == 2
    assert "<b>one" not in whole
    assert re.findall(r"<script[^>]*>", whole) == ['<script type="application/json">'] * 2 + [
        "<script>"
    ]
