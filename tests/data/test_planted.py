"""Documents with a planted word: it is where the record says, and nothing else tells the label."""

from collections import Counter
from itertools import islice

import pytest

from regard.data.synthetic.planted import PlantedWords


def small(**more):
    return PlantedWords(**{"size": 200, "held_out": 30, **more})


def test_the_key_word_is_where_the_record_says():
    corpus = small()
    meant = {word: label for label, words in corpus.keys.items() for word in words}
    assert len(meant) == 30
    for record in corpus.read("train"):
        lines = [line.split() for line in record["text"].split("\n")]
        assert meant[lines[record["sentence"]][record["word"]]] == record["label"]
        assert sum(word in meant for line in lines for word in line) == 1
        assert 18 <= len(lines) <= 22
        assert all(5 <= len(line) <= 12 for line in lines)


def test_nothing_else_tells():
    """Classes, key words and places are drawn evenly; filler is of all words."""
    corpus = PlantedWords(
        2000,
        classes=4,
        keywords_per_class=5,
        filler_words=50,
        min_sentences=3,
        max_sentences=5,
        min_words=2,
        max_words=4,
    )
    records = list(corpus.read("train"))
    labels = Counter(record["label"] for record in records)
    assert set(labels) == {"class0", "class1", "class2", "class3"}
    assert all(400 < count < 600 for count in labels.values())
    lines = [record["text"].split("\n") for record in records]
    assert {record["sentence"] for record in records} == {0, 1, 2, 3, 4}
    first = sum(record["sentence"] == 0 for record in records)
    expected = sum(1 / len(some) for some in lines)
    assert abs(first - expected) < 4 * (len(records) * 0.25 * 0.75) ** 0.5
    words = {word for some in lines for line in some for word in line.split()}
    assert words == {*corpus.filler, *(word for some in corpus.keys.values() for word in some)}
    assert len(words) == 70


def test_no_document_is_in_two_splits():
    corpus = PlantedWords(
        2000,
        held_out=500,
        filler_words=20,
        min_sentences=2,
        max_sentences=2,
        min_words=2,
        max_words=2,
    )
    seen = {split: {r["text"] for r in corpus.read(split)} for split in corpus.splits}
    assert not seen["train"] & (seen["dev"] | seen["test"])
    assert not seen["dev"] & seen["test"]
    assert len(list(corpus.read("dev"))) == 500


def test_the_same_seed_gives_the_same_documents():
    assert list(small(seed=7).read("dev")) == list(small(seed=7).read("dev"))
    one, other = small(seed=7), small(seed=8)
    assert one.keys != other.keys
    assert one.example("train", 60) == next(islice(one.read("train"), 60, None))
    first = next(small().read("train"))
    assert (first["label"], first["sentence"], first["word"]) == FIRST
    assert "\n" not in small().describe()


FIRST = ("class2", 2, 5)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 0}, "size must be at least 1, not 0"),
        ({"keywords_per_class": 0}, "keywords_per_class must be at least 1, not 0"),
        ({"min_sentences": 0}, r"min_sentences must be from 1 to max_sentences \(22\), not 0"),
        ({"min_words": 13}, r"min_words must be from 1 to max_words \(12\), not 13"),
        ({"filler_words": 4000}, "4000 different words can be made"),
        (
            {"filler_words": 5, "min_sentences": 1, "min_words": 2},
            "too few documents for three splits",
        ),
    ],
)
def test_wrong_arguments(wrong, words):
    with pytest.raises(ValueError, match=words):
        PlantedWords(**wrong)
    with pytest.raises(ValueError, match="not 'tset'; did you mean 'test'"):
        list(small().read("tset"))
