"""Tests of reordered sentences: true links, disjoint splits, reproducible records."""

import os
import subprocess
import sys
from itertools import islice

import pytest

from regard.data.synthetic.reorder import ORDERS, ReorderedSentences


def parse_links(record):
    return [tuple(map(int, link.split("-"))) for link in record["links"].split()]


def small(**options):
    return ReorderedSentences(**{"size": 300, "held_out": 30, **options})


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fertility", [0.0, 0.5, 1.0])
def test_every_word_is_linked_to_its_translation(order, fertility):
    """Links follow the lexicon, and each target word has exactly one link."""
    corpus = small(order=order, fertility=fertility)
    translations = dict(zip(corpus.lexicon.source, corpus.lexicon.target, strict=True))
    for record in corpus.read("train"):
        source, target = record["source"].split(), record["target"].split()
        links = parse_links(record)
        assert sorted(j for _, j in links) == list(range(len(target)))
        assert {i for i, _ in links} == set(range(len(source)))
        for position, word in enumerate(source):
            linked_words = [target[j] for i, j in links if i == position]
            assert tuple(linked_words) == translations[word]
            assert len(linked_words) in {1 + int(fertility), 1 + int(fertility > 0)}
    assert sum(len(linked_words) == 2 for linked_words in translations.values()) == 40 * fertility


def expected_order(corpus, message):
    """Return the target order by an independent implementation, for fertility 0."""
    movers = set(corpus.lexicon.source[:10])  # a quarter of 40
    if corpus.order == "far":
        return message[::-1]
    target_words, rest = [], list(message)
    while rest:
        size = {"same": 2, "local": 4}[corpus.order] if rest[0] in movers else 1
        target_words += rest[:size][::-1]
        rest = rest[size:]
    return target_words


@pytest.mark.parametrize("order", ORDERS)
def test_order_rules(order):
    corpus = small(order=order)
    translations = dict(zip(corpus.lexicon.source, corpus.lexicon.target, strict=True))
    moved_count = 0
    for record in corpus.read("train"):
        message = record["source"].split()
        assert record["target"].split() == [
            translations[w][0] for w in expected_order(corpus, message)
        ]
        moved_count += any(i != j for i, j in parse_links(record))
    assert moved_count > 200


@pytest.mark.parametrize(
    ("order", "min_distance", "max_distance"), [("same", 0, 1), ("local", 0, 3)]
)
def test_distances_of_moved_words(order, min_distance, max_distance):
    distances = [
        abs(i - j) for record in small(order=order).read("train") for i, j in parse_links(record)
    ]
    assert (min(distances), max(distances)) == (min_distance, max_distance)


def test_far_reverses_the_sentence():
    for record in small(order="far").read("train"):
        length = len(record["source"].split())
        assert parse_links(record) == [(i, length - 1 - i) for i in range(length)]


def test_no_sentence_is_in_two_splits():
    corpus = ReorderedSentences(1200, held_out=250, vocabulary_size=10, min_words=4, max_words=4)
    sources_by_split = {split: {r["source"] for r in corpus.read(split)} for split in corpus.splits}
    assert len(sources_by_split["train"]) > 1000
    assert not sources_by_split["train"] & (sources_by_split["dev"] | sources_by_split["test"])
    assert not sources_by_split["dev"] & sources_by_split["test"]


def test_the_same_seed_gives_the_same_pairs():
    command = (
        "from regard.data.synthetic.reorder import ReorderedSentences;"
        "print(list(ReorderedSentences(50, seed=7, fertility=0.3).read('train')))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in (1, 2)
    }
    assert outputs == {str(list(ReorderedSentences(50, seed=7, fertility=0.3).read("train")))}
    corpus, other_seed = small(seed=7), small(seed=8)
    assert corpus.lexicon != other_seed.lexicon
    assert corpus.example("train", 60) == next(islice(corpus.read("train"), 60, None))


def test_sizes_and_variety():
    corpus = ReorderedSentences(1000, held_out=10, vocabulary_size=40, min_words=5, max_words=9)
    records = list(corpus.read("train"))
    assert len(records) == 1000
    assert len(list(corpus.read("dev"))) == len(list(corpus.read("test"))) == 10
    assert {len(record["source"].split()) for record in records} == {5, 6, 7, 8, 9}
    assert len({word for record in records for word in record["source"].split()}) == 40
    assert len({record["source"] for record in records}) > 950
    assert "\n" not in corpus.describe()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be at least 1, not 0"),
        ({"held_out": 0}, "held_out must be at least 1"),
        ({"order": "fra"}, "order must be one of same, local, far, not 'fra'; did you mean 'far'"),
        ({"vocabulary_size": 3}, "vocabulary_size must be from 4 to 2000, not 3"),
        ({"vocabulary_size": 2001}, "vocabulary_size must be from 4 to 2000"),
        ({"min_words": 0}, "min_words must be from 1 to max_words"),
        ({"min_words": 9, "max_words": 8}, r"min_words must be from 1 to max_words \(8\), not 9"),
        ({"vocabulary_size": 5, "min_words": 3}, "too few sentences for three splits"),
        ({"fertility": 1.5}, "fertility must be from 0 to 1, not 1.5"),
    ],
)
def test_bad_settings(options, message, unchecked):
    with pytest.raises(ValueError, match=message):
        ReorderedSentences(**options)
    with pytest.raises(ValueError, match="not 'tset'; did you mean 'test'"):
        list(small().read("tset"))
