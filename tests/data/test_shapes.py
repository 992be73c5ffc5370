"""Shapes: what is said of an image is what is in it."""

from collections import Counter

import numpy as np
import pytest

from regard.data.synthetic.shapes import COLORS, SHAPES, Shapes


def test_the_image_is_what_is_said():
    corpus = Shapes(60, noise=0)
    seen = Counter()
    for record in corpus.read("train"):
        _, size, colour, shape, *where = record["caption"].split()
        top, left, bottom, right = record["box"]
        image = record["image"].astype(int)
        assert (image.shape, record["label"]) == ((32, 32, 3), shape)
        ground = np.abs(image - 40).sum(-1) < 60
        outside = np.ones((32, 32), bool)
        outside[max(top - 1, 0) : bottom + 1, max(left - 1, 0) : right + 1] = False
        assert ground[outside].all()
        inside = image[top:bottom, left:right][~ground[top:bottom, left:right]]
        # the likeliest colour of what is not ground is the one that is named
        far = {name: np.abs(inside - rgb).sum(-1).mean() for name, rgb in COLORS.items()}
        assert min(far, key=far.__getitem__) == colour
        assert (max(bottom - top, right - left) > 12) == (size == "large"), record["caption"]
        middle = ((top + bottom) / 2, (left + right) / 2)
        words = set(where)
        assert ("top" in words) <= (middle[0] < 14)
        assert ("bottom" in words) <= (middle[0] > 17)
        assert ("left" in words) <= (middle[1] < 14)
        assert ("right" in words) <= (middle[1] > 17)
        seen[shape, size] += 1
    assert len({shape for shape, _ in seen}) == 6


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
def test_areas_are_those_of_geometry(shape, share):
    """As shares of the square of two radii; a cross is two bars that share their middle."""
    y, x = np.mgrid[:400, :400].astype(float) - 199.5
    assert (SHAPES[shape](x, y, 150.0) < 0).sum() / 300**2 == pytest.approx(share, rel=0.01)


def test_same_seed_same_images_and_no_leaks():
    one, again, other = Shapes(40, held_out=40), Shapes(90, held_out=40), Shapes(40, seed=1)
    first = list(one.read("train"))
    for mine, same in zip(first, again.read("train"), strict=False):
        assert np.array_equal(mine["image"], same["image"])
        assert mine["caption"] == same["caption"]
    assert any(
        a["caption"] != b["caption"] for a, b in zip(first, other.read("train"), strict=True)
    )
    plain = Shapes(400, held_out=200, noise=0)
    seen = {s: {r["image"].tobytes() for r in plain.read(s)} for s in plain.splits}
    assert not seen["train"] & seen["dev"]
    assert not seen["train"] & seen["test"]
    assert not seen["dev"] & seen["test"]


def test_labels_and_colours_know_nothing_of_each_other():
    pairs = Counter((r["label"], r["caption"].split()[2]) for r in Shapes(1800).read("train"))
    assert len(pairs) == 36
    assert min(pairs.values()) > 20
    assert max(pairs.values()) < 90


def test_settings():
    assert {r["label"] for r in Shapes(20, shapes=("ring", "cross")).read("dev")} == {
        "ring",
        "cross",
    }
    assert next(Shapes(side=48).read("dev"))["image"].shape == (48, 48, 3)
    for settings, said in (
        ({"size": 0}, "size must be at least 1"),
        ({"side": 8}, "side must be at least 16 pixels"),
        ({"noise": 101}, "noise must be from 0 to 100"),
        ({"shapes": ("ring", "star")}, "there is no 'star'; there are circle"),
        ({"shapes": ("ring",)}, "at least two different ones"),
    ):
        with pytest.raises(ValueError, match=said):
            Shapes(**settings)
    with pytest.raises(ValueError, match="split must be one of"):
        list(Shapes().read("valid"))
