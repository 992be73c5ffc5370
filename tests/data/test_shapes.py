"""Tests of shapes: captions, boxes and labels match the images."""

from collections import Counter

import numpy as np
import pytest

from regard.data.synthetic.shapes import COLORS, SHAPES, Shapes


def test_captions_and_boxes_match_the_image():
    corpus = Shapes(60, noise=0)
    counts = Counter()
    for record in corpus.read("train"):
        _, size, color, shape, *position_words = record["caption"].split()
        top, left, bottom, right = record["box"]
        image = record["image"].astype(int)
        assert (image.shape, record["label"]) == ((32, 32, 3), shape)
        is_background = np.abs(image - 40).sum(-1) < 60
        is_outside = np.ones((32, 32), bool)
        is_outside[max(top - 1, 0) : bottom + 1, max(left - 1, 0) : right + 1] = False
        assert is_background[is_outside].all()
        shape_pixels = image[top:bottom, left:right][~is_background[top:bottom, left:right]]
        # The nearest color of the foreground is the one in the caption.
        color_distances = {
            name: np.abs(shape_pixels - rgb).sum(-1).mean() for name, rgb in COLORS.items()
        }
        assert min(color_distances, key=color_distances.__getitem__) == color
        assert (max(bottom - top, right - left) > 12) == (size == "large"), record["caption"]
        center = ((top + bottom) / 2, (left + right) / 2)
        position_set = set(position_words)
        assert ("top" in position_set) <= (center[0] < 14)
        assert ("bottom" in position_set) <= (center[0] > 17)
        assert ("left" in position_set) <= (center[1] < 14)
        assert ("right" in position_set) <= (center[1] > 17)
        counts[shape, size] += 1
    assert len({shape for shape, _ in counts}) == 6


@pytest.mark.parametrize(
    ("shape", "share"),
    [
        ("circle", np.pi / 4),
        ("square", 0.85**2),
        ("diamond", 0.5),
        ("triangle", 3 * 3**0.5 / 16),
        ("cross", (2 * 2 * 0.6 - 0.6**2) / 4),
        ("ring", np.pi * (1 - 0.25) / 4),
    ],
)
def test_areas_match_geometry(shape, share):
    """Areas are shares of a square with sides of two radii."""
    y, x = np.mgrid[:400, :400].astype(float) - 199.5
    assert (SHAPES[shape](x, y, 150.0) < 0).sum() / 300**2 == pytest.approx(share, rel=0.01)


def test_same_seed_same_images_and_no_leaks():
    corpus, larger, other_seed = (
        Shapes(40, held_out=40),
        Shapes(90, held_out=40),
        Shapes(40, seed=1),
    )
    first = list(corpus.read("train"))
    for expected, actual in zip(first, larger.read("train"), strict=False):
        assert np.array_equal(expected["image"], actual["image"])
        assert expected["caption"] == actual["caption"]
    assert any(
        first_record["caption"] != other_record["caption"]
        for first_record, other_record in zip(first, other_seed.read("train"), strict=True)
    )
    noiseless = Shapes(400, held_out=100, side=16, noise=0)
    images_by_split = {
        s: {r["image"].tobytes() for r in noiseless.read(s)} for s in noiseless.splits
    }
    assert not images_by_split["train"] & images_by_split["dev"]
    assert not images_by_split["train"] & images_by_split["test"]
    assert not images_by_split["dev"] & images_by_split["test"]


def test_labels_and_colors_are_independent():
    pairs = Counter(
        (r["label"], r["caption"].split()[2]) for r in Shapes(1800, side=16).read("train")
    )
    assert len(pairs) == 36
    assert min(pairs.values()) > 20
    assert max(pairs.values()) < 90


def test_settings():
    two_shapes = Shapes(held_out=20, shapes=("ring", "cross"))
    assert {r["label"] for r in two_shapes.read("dev")} == {"ring", "cross"}
    assert next(Shapes(side=48).read("dev"))["image"].shape == (48, 48, 3)
    for settings, message in (
        ({"size": 0}, "size must be at least 1"),
        ({"side": 8}, "side must be at least 16 pixels"),
        ({"noise": 101}, "noise must be from 0 to 100"),
        ({"shapes": ("ring", "star")}, "unknown shape 'star'; choose from circle"),
        ({"shapes": ("ring",)}, "at least two different names"),
    ):
        with pytest.raises(ValueError, match=message):
            Shapes(**settings)
    with pytest.raises(ValueError, match="split must be one of"):
        list(Shapes().read("valid"))
