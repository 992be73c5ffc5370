"""Tests of digits in a grid: reproducible images whose captions and boxes are right."""

import numpy as np
import pytest

from regard.data.synthetic.digits import Digits


def test_counts_of_digits_are_uniform_in_every_split():
    corpus = Digits(200, max_digits=4, held_out=200, side=16, noise=0)
    for split in corpus.splits:
        counts = [len(record["boxes"]) for record in corpus.read(split)]
        assert all(30 < counts.count(n) < 70 for n in (1, 2, 3, 4)), split


def test_captions_match_the_image():
    corpus = Digits(20, rows=2, columns=3, max_digits=6, noise=0)
    for record in corpus.read("train"):
        words, pixels = record["caption"].split(), record["image"]
        assert pixels.shape == (48, 48, 1)
        assert pixels.dtype == np.uint8
        filled_cells = set()
        for index, (top, left, bottom, right) in record["boxes"]:
            assert words[index].isdigit()
            assert words[index + 1] == ("top", "bottom")[top // 24]
            assert words[index + 2] == ("left", "centre", "right")[left // 16]
            assert (bottom - top, right - left) == (24, 16)
            assert pixels[top:bottom, left:right].max() > 150
            filled_cells.add((top, left))
        assert sum(word.isdigit() for word in words) == len(record["boxes"])
        for top in (0, 24):  # other cells are empty
            for left in (0, 16, 32):
                cell = pixels[top : top + 24, left : left + 16]
                assert ((top, left) in filled_cells) == (cell.max() > 60)


def test_digits_vary_and_are_reproducible():
    corpus = Digits(60, min_digits=4, noise=0)
    records = list(corpus.read("train"))
    assert all(
        np.array_equal(first["image"], second["image"])
        for first, second in zip(records, corpus.read("train"), strict=True)
    )
    assert records[3]["caption"] == corpus.example("train", 3)["caption"]
    assert {len(record["boxes"]) for record in records} == {4}
    cells_by_digit = {}
    for record in records:
        words = record["caption"].split()
        for index, (top, left, bottom, right) in record["boxes"]:
            cell = record["image"][top:bottom, left:right]
            cells_by_digit.setdefault(words[index], set()).add(cell.tobytes())
    assert len(cells_by_digit) == 10
    assert all(
        len(cells) > 3 for cells in cells_by_digit.values()
    )  # in different sizes and positions


def test_no_long_caption_is_in_two_splits():
    corpus = Digits(100, held_out=50, min_digits=2)
    captions_by_split = [{r["caption"] for r in corpus.read(split)} for split in corpus.splits]
    assert not captions_by_split[0] & captions_by_split[1]
    assert not captions_by_split[0] & captions_by_split[2]
    assert not captions_by_split[1] & captions_by_split[2]
    assert "2 to 4 digits in 2 x 2 cells" in corpus.describe()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size must be at least 1"),
        ({"rows": 4}, "rows must be 2 or 3, not 4"),
        ({"max_digits": 5}, r"1 <= min_digits \(1\) <= max_digits \(5\); there are 4 cells"),
        (
            {"rows": 3, "side": 32},
            "side must be a multiple of 3 and 2, with at least 8 pixels a cell",
        ),
        ({"noise": 101}, "noise must be from 0 to 100"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Digits(**settings)


def test_handwritten_digits_need_scikit_learn(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match="pip install scikit-learn, or set 'font'"):
        next(Digits(digit_source="scikit-learn").read("train"))
