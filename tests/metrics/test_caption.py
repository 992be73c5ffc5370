"""Tests of caption metrics: CIDEr, BLEU by order, and pointing accuracy."""

import math

import pytest

from regard.metrics.caption import bleu_1_to_4, cider, pointing_accuracy


def test_cider_of_equal_texts():
    texts = ["a red ring on top", "two blue cats sleep", "3 top left , 7 bottom right"]
    assert cider(texts, texts) == pytest.approx(1000)
    assert cider([text.upper() for text in texts], [[text] for text in texts]) == pytest.approx(
        1000
    )


def test_words_of_all_images_do_not_count():
    """The word "a" is in both references, so its idf is 0."""
    assert cider(["a", "a"], ["a cat", "a dog"]) == 0
    assert cider(["a cat"], ["a cat"]) == 0  # a single image has idf 0


def test_known_cider():
    """Output "cat sits", reference "cat cat"; the other image shares no words.

    n = 1: output (cat 1, sits 1), reference (cat 2); idf of cat and of an unseen word: log 2.
        min(1, 2) * 2 / (sqrt(2) * 2) = 1 / sqrt(2)
    n = 2: "cat sits" and "cat cat": 0; n = 3, 4: none. Equal lengths: no penalty.
    """
    first = 10 * (1 / math.sqrt(2)) / 4
    second = 0.0
    result = cider(["cat sits", "x"], ["cat cat", "dog dog"])
    assert result == pytest.approx(100 * (first + second) / 2)


def test_length_and_several_references():
    """Twelve words and one: exp(-11^2 / 72); two references are averaged."""
    long = " ".join(["cat"] * 12)
    with_one_reference = cider([long, "x"], ["cat", "dog"])
    # min(12, 1) * 1 / (12 * 1), for unigrams only, and for one of two outputs
    assert with_one_reference == pytest.approx(100 * 10 * math.exp(-121 / 72) / 12 / 4 / 2)
    with_two_references = cider(["cat", "x"], [["cat", "bird"], ["dog", "dog"]])
    assert with_two_references == pytest.approx(cider(["cat", "x"], ["cat", "dog"]) / 2)


def test_bleu_by_order():
    scores = bleu_1_to_4(["a b c d e", "x y"], ["a b x d e", "x y"])
    assert scores[0].value == pytest.approx(100 * 6 / 7)
    assert scores[1].value == pytest.approx(100 * math.sqrt(6 / 7 * 3 / 5))
    assert [score.value for score in scores] == sorted(
        (score.value for score in scores), reverse=True
    )


def test_pointing_accuracy():
    boxes = [(0, 0, 8, 8), (0, 8, 8, 16), (8, 0, 16, 8)]
    assert pointing_accuracy([(4, 4), (4, 8), (4, 4)], boxes) == pytest.approx(200 / 3)
    with pytest.raises(ValueError, match="0 locations and 0 boxes"):
        pointing_accuracy([], [])
