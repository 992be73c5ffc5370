"""Digits in a grid: the same each time, said right, in the cell that the caption names."""

import numpy as np
import pytest

from regard.data.synthetic.digits import Digits


def test_every_split_has_as_many_of_each_count():
    corpus = Digits(400, max_digits=4, held_out=400)
    for split in corpus.splits:
        counts = [len(record["boxes"]) for record in corpus.read(split)]
        assert all(70 < counts.count(n) < 130 for n in (1, 2, 3, 4)), split


def test_captions_say_what_is_drawn():
    corpus = Digits(20, rows=2, columns=3, max_digits=6, noise=0)
    for record in corpus.read("train"):
        words, pixels = record["caption"].split(), record["image"]
        assert pixels.shape == (48, 48, 1)
        assert pixels.dtype == np.uint8
        lit = set()
        for at, (top, left, bottom, right) in record["boxes"]:
            assert words[at].isdigit()
            assert words[at + 1] == ("top", "bottom")[top // 24]
            assert words[at + 2] == ("left", "centre", "right")[left // 16]
            assert (bottom - top, right - left) == (24, 16)
            assert pixels[top:bottom, left:right].max() > 150
            lit.add((top, left))
        assert sum(word.isdigit() for word in words) == len(record["boxes"])
        for top in (0, 24):  # the others are empty
            for left in (0, 16, 32):
                cell = pixels[top : top + 24, left : left + 16]
                assert ((top, left) in lit) == (cell.max() > 60)


def test_digits_look_different_and_the_same_each_time():
    corpus = Digits(60, min_digits=4, noise=0)
    records = list(corpus.read("train"))
    assert all(
        np.array_equal(one["image"], other["image"])
        for one, other in zip(records, corpus.read("train"), strict=True)
    )
    assert records[3]["caption"] == corpus.example("train", 3)["caption"]
    assert {len(record["boxes"]) for record in records} == {4}
    seen = {}
    for record in records:
        words = record["caption"].split()
        for at, (top, left, bottom, right) in record["boxes"]:
            cell = record["image"][top:bottom, left:right]
            seen.setdefault(words[at], set()).add(cell.tobytes())
    assert len(seen) == 10
    assert all(len(some) > 3 for some in seen.values())  # in varied size and place


def test_no_long_caption_is_in_two_splits():
    corpus = Digits(100, held_out=50, min_digits=2)
    each = [{r["caption"] for r in corpus.read(split)} for split in corpus.splits]
    assert not each[0] & each[1]
    assert not each[0] & each[2]
    assert not each[1] & each[2]
    assert "2 to 4 digits in 2 x 2 cells" in corpus.describe()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"size": 0}, "size must be at least 1"),
        ({"rows": 4}, "rows must be 2 or 3, not 4"),
        ({"max_digits": 5}, r"1 <= min_digits \(1\) <= max_digits \(5\); there are 4 cells"),
        ({"rows": 3, "side": 32}, "side must be a multiple of 3 and 2, with 8 pixels a cell"),
        ({"noise": 101}, "noise must be from 0 to 100"),
    ],
)
def test_bad_settings(settings, says):
    with pytest.raises(ValueError, match=says):
        Digits(**settings)


def test_handwriting_needs_its_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match="pip install scikit-learn, or set 'font'"):
        next(Digits(digit_source="scikit-learn").read("train"))
