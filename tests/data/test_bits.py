"""Tests of bit sequences: records, input and target ids, and error messages."""

from collections import Counter

import pytest

from regard.data.corpus import Corpus
from regard.data.synthetic.bits import Copy, CopyFormat, Recall, RecallFormat

COPY = Copy(300, held_out=20, test_sizes=[2, 30])
RECALL = Recall(300, held_out=20, test_sizes=[3, 9])


@pytest.mark.parametrize("corpus", [COPY, RECALL], ids=["copy", "recall"])
def test_splits(corpus):
    assert isinstance(corpus, Corpus)
    splits = {split: list(corpus.read(split)) for split in corpus.splits}
    assert {split: len(records) for split, records in splits.items()} == {
        "train": 300,
        "dev": 20,
        "test": 40,
    }
    low, high = corpus.size_range
    assert Counter(record["size"] for record in splits["test"]) == dict.fromkeys(
        corpus.test_sizes, 20
    )
    assert {record["size"] for record in splits["train"]} == set(range(low, high + 1))
    assert splits["train"][7] == corpus.example("train", 7)
    assert list(corpus.read("train")) == splits["train"]
    assert splits["dev"] != splits["train"][:20]
    other = type(corpus)(300, seed=1)
    assert other.example("train", 7) != splits["train"][7]


def test_copy_target_equals_its_source():
    for record in COPY.read("train"):
        assert record["source"] == record["target"]
        options = record["source"].split()
        assert len(options) == record["size"]
        assert {len(word) for word in options} == {8}
    bits = "".join(record["source"].replace(" ", "") for record in COPY.read("train"))
    assert bits.count("1") / len(bits) == pytest.approx(0.5, abs=0.02)


def test_recall_target_is_the_next_item():
    query_positions = Counter[int]()
    for record in RECALL.read("train"):
        before, _, query = record["source"].partition("?")
        items = [item.strip() for item in before.split("|")]
        assert len(set(items)) == len(items) == record["size"]
        position = items.index(query.strip())
        assert items[position + 1] == record["target"]
        query_positions[position] += record["size"] == 6
        assert all(len(word) == 6 for word in record["target"].split())
    assert set(query_positions) == set(range(5))  # all but the last


def test_input_and_target_ids():
    copy = CopyFormat(3)
    assert copy.input_ids("011 100", "") == [3, 4, 8]
    assert copy.target_ids("011 100", "") == [3, 4]
    assert [copy.symbol_name(n) for n in (3, 8)] == ["011", "(end)"]
    recall = RecallFormat(2, 2)
    text = "01 10 | 11 00 ? 01 10"
    assert recall.input_ids(text, "") == [4, 1, 2, 4, 3, 0, 5, 1, 2, 5]
    assert recall.target_ids(text, "") == [3, 0]
    assert [recall.symbol_name(n) for n in (4, 5, 1)] == ["|", "?", "01"]


@pytest.mark.parametrize(
    ("sequence_format", "text", "message"),
    [
        (CopyFormat(8), "0110", r"^here: '0110' is not a vector of 8 bits, as 01100110$"),
        (CopyFormat(4), "0112", "'0112' is not a vector of 4 bits"),
        (CopyFormat(4), " ", "^here: empty; give vectors of 4 bits"),
        (RecallFormat(2, 1), "01 | 10", "no query; write it as ITEM"),
        (RecallFormat(2, 1), "01 | 10 ? 11", "is none of the items before the last"),
        (RecallFormat(2, 1), "01 | 10 ? 10", "is none of the items before the last"),
        (RecallFormat(2, 2), "01 | 10 11 ? 10 11", "an item has 1 vectors, not 2"),
    ],
)
def test_bad_sequences(sequence_format, text, message):
    with pytest.raises(ValueError, match=message):
        sequence_format.target_ids(text, "here")


@pytest.mark.parametrize(
    ("corpus_class", "options", "message"),
    [
        (Copy, {"size": 0}, "size must be at least 1, not 0"),
        (
            Copy,
            {"min_vectors": 5, "max_vectors": 4},
            r"min_vectors must be from 1 to max_vectors \(4\), not 5",
        ),
        (Copy, {"width": 30}, "width must be from 1 to 24, not 30"),
        (
            Copy,
            {"test_sizes": [3, 3]},
            r"test_sizes must be different numbers of at least 1, not \[3, 3\]",
        ),
        (Recall, {"min_items": 1}, r"min_items must be from 2 to max_items \(6\), not 1"),
        (Recall, {"test_sizes": [1]}, r"of at least 2, not \[1\]"),
        (Recall, {"vectors_per_item": 0}, "vectors_per_item must be at least 1, not 0"),
        (
            Recall,
            {"width": 2, "vectors_per_item": 1},
            "too few different items: raise width or vectors_per_item",
        ),
    ],
)
def test_bad_settings(corpus_class, options, message):
    with pytest.raises(ValueError, match=message):
        corpus_class(**options)


def test_descriptions():
    assert COPY.describe() == (
        "copy: 300 sequences of 1 to 20 vectors, tested on 2, 30, 8 bits each; synthetic"
    )
    assert "2 to 6 items, tested on 3, 9" in RECALL.describe()
