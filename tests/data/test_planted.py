"""Tests of documents with a planted keyword: its position, and nothing else, gives the label."""

from collections import Counter
from itertools import islice

import pytest

from regard.data.synthetic.planted import PlantedWords


def small(**options):
    return PlantedWords(**{"size": 200, "held_out": 30, **options})


def test_keyword_position():
    corpus = small()
    label_by_keyword = {word: label for label, message in corpus.keys.items() for word in message}
    assert len(label_by_keyword) == 30
    for record in corpus.read("train"):
        lines = [line.split() for line in record["text"].split("\n")]
        assert label_by_keyword[lines[record["sentence"]][record["word"]]] == record["label"]
        assert sum(word in label_by_keyword for line in lines for word in line) == 1
        assert 18 <= len(lines) <= 22
        assert all(5 <= len(line) <= 12 for line in lines)


def test_labels_positions_and_filler_are_uniform():
    """Classes, keywords and positions are uniform; all filler words occur."""
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
    first_count = sum(record["sentence"] == 0 for record in records)
    expected_count = sum(1 / len(sentences) for sentences in lines)
    assert abs(first_count - expected_count) < 4 * (len(records) * 0.25 * 0.75) ** 0.5
    message = {word for sentences in lines for line in sentences for word in line.split()}
    assert message == {
        *corpus.filler,
        *(word for sentences in corpus.keys.values() for word in sentences),
    }
    assert len(message) == 70


def test_no_document_is_in_two_splits():
    corpus = PlantedWords(  # 40,000 possible documents: random ones would collide
        800,
        held_out=150,
        classes=1,
        keywords_per_class=10,
        filler_words=10,
        min_sentences=1,
        max_sentences=1,
        min_words=4,
        max_words=4,
    )
    texts = {split: [r["text"] for r in corpus.read(split)] for split in corpus.splits}
    assert not {*texts["train"]} & {*texts["dev"], *texts["test"]}
    assert not {*texts["dev"]} & {*texts["test"]}
    assert len(texts["dev"]) == 150


def test_the_same_seed_gives_the_same_documents():
    first_read, second_read = (list(small(seed=7, held_out=5).read("dev")) for _ in range(2))
    assert first_read == second_read
    corpus, other_seed = small(seed=7), small(seed=8)
    assert corpus.keys != other_seed.keys
    assert corpus.example("train", 60) == next(islice(corpus.read("train"), 60, None))
    first = next(small().read("train"))
    assert (first["label"], first["sentence"], first["word"]) == FIRST
    assert "\n" not in small().describe()


FIRST = ("class2", 2, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be at least 1, not 0"),
        ({"keywords_per_class": 0}, "keywords_per_class must be at least 1, not 0"),
        ({"min_sentences": 0}, r"min_sentences must be from 1 to max_sentences \(22\), not 0"),
        ({"min_words": 13}, r"min_words must be from 1 to max_words \(12\), not 13"),
        ({"filler_words": 4000}, "there are 4000 different words"),
        (
            {"filler_words": 5, "min_sentences": 1, "min_words": 2},
            "too few documents for three splits",
        ),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=message):
        PlantedWords(**options)
    with pytest.raises(ValueError, match="not 'tset'; did you mean 'test'"):
        list(small().read("tset"))
