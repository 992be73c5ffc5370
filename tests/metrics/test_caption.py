"""CIDEr by hand, BLEU by order, and where words looked."""

import math

import pytest

from regard.metrics.caption import bleu_1_to_4, cider, pointing_accuracy


def test_what_equals_its_reference_has_the_most():
    said = ["a red ring on top", "two blue cats sleep", "3 top left , 7 bottom right"]
    assert cider(said, said) == pytest.approx(1000)
    assert cider([text.upper() for text in said], [[one] for one in said]) == pytest.approx(1000)


def test_words_that_all_images_share_count_nothing():
    """ "a" is in both references: its idf is 0, so that nothing is left of the first output."""
    assert cider(["a", "a"], ["a cat", "a dog"]) == 0
    assert cider(["a cat"], ["a cat"]) == 0  # of one image, nothing is rare


def test_by_hand():
    """Output "cat sits", reference "cat cat"; the other image's words are its own.

    n = 1: output (cat 1, sits 1), reference (cat 2); idf of cat and of an unseen word: log 2.
        min(1, 2) * 2 / (sqrt(2) * 2) = 1 / sqrt(2)
    n = 2: "cat sits" beside "cat cat": 0; n = 3, 4: none. Equal lengths: no penalty.
    """
    first = 10 * (1 / math.sqrt(2)) / 4
    second = 0.0
    found = cider(["cat sits", "x"], ["cat cat", "dog dog"])
    assert found == pytest.approx(100 * (first + second) / 2)


def test_length_and_several_references():
    """Twelve words beside one: exp(-11^2 / 72); of two references, the mean."""
    long = " ".join(["cat"] * 12)
    alone = cider([long, "x"], ["cat", "dog"])
    # min(12, 1) * 1 / (12 * 1), of unigrams only, and half of the outputs
    assert alone == pytest.approx(100 * 10 * math.exp(-121 / 72) / 12 / 4 / 2)
    both = cider(["cat", "x"], [["cat", "bird"], ["dog", "dog"]])
    assert both == pytest.approx(cider(["cat", "x"], ["cat", "dog"]) / 2)


def test_bleu_by_order():
    found = bleu_1_to_4(["a b c d e", "x y"], ["a b x d e", "x y"])
    assert found[0].value == pytest.approx(100 * 6 / 7)
    assert found[1].value == pytest.approx(100 * math.sqrt(6 / 7 * 3 / 5))
    assert [one.value for one in found] == sorted((one.value for one in found), reverse=True)


def test_pointing():
    boxes = [(0, 0, 8, 8), (0, 8, 8, 16), (8, 0, 16, 8)]
    assert pointing_accuracy([(4, 4), (4, 8), (4, 4)], boxes) == pytest.approx(200 / 3)
    with pytest.raises(ValueError, match="places are 0 and boxes 0"):
        pointing_accuracy([], [])
