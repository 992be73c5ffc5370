"""Made-up sentences: links are the truth, no leak between splits, the same for the same seed."""

import os
import subprocess
import sys
from itertools import islice

import pytest

from regard.data.synthetic.reorder import ORDERS, ReorderedSentences


def linked(record):
    return [tuple(map(int, link.split("-"))) for link in record["links"].split()]


def small(**more):
    return ReorderedSentences(**{"size": 300, "held_out": 30, **more})


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fertility", [0.0, 0.5, 1.0])
def test_every_word_is_linked_to_its_translation(order, fertility):
    """Linked words are of the lexicon, and each word of the target has exactly one link."""
    corpus = small(order=order, fertility=fertility)
    meant = dict(zip(corpus.lexicon.source, corpus.lexicon.target, strict=True))
    for record in corpus.read("train"):
        source, target = record["source"].split(), record["target"].split()
        links = linked(record)
        assert sorted(j for _, j in links) == list(range(len(target)))
        assert {i for i, _ in links} == set(range(len(source)))
        for place, word in enumerate(source):
            said = [target[j] for i, j in links if i == place]
            assert tuple(said) == meant[word]
            assert len(said) in {1 + int(fertility), 1 + int(fertility > 0)}
    assert sum(len(said) == 2 for said in meant.values()) == 40 * fertility


def order_of(corpus, words):
    """By an independent reading of the rule, for fertility 0."""
    movers = set(corpus.lexicon.source[:10])  # a quarter of 40
    if corpus.order == "far":
        return words[::-1]
    said, rest = [], list(words)
    while rest:
        size = {"same": 2, "local": 4}[corpus.order] if rest[0] in movers else 1
        said += rest[:size][::-1]
        rest = rest[size:]
    return said


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_follows_from_the_source(order):
    corpus = small(order=order)
    meant = dict(zip(corpus.lexicon.source, corpus.lexicon.target, strict=True))
    moved = 0
    for record in corpus.read("train"):
        words = record["source"].split()
        assert record["target"].split() == [meant[w][0] for w in order_of(corpus, words)]
        moved += any(i != j for i, j in linked(record))
    assert moved > 200


@pytest.mark.parametrize(("order", "least", "most"), [("same", 0, 1), ("local", 0, 3)])
def test_words_stay_near_their_places(order, least, most):
    moves = [abs(i - j) for record in small(order=order).read("train") for i, j in linked(record)]
    assert (min(moves), max(moves)) == (least, most)


def test_far_words_move_far():
    """The first becomes the last."""
    for record in small(order="far").read("train"):
        length = len(record["source"].split())
        assert linked(record) == [(i, length - 1 - i) for i in range(length)]


@pytest.mark.parametrize("order", ORDERS)
def test_no_sentence_is_in_two_splits(order):
    corpus = ReorderedSentences(
        2000, held_out=500, vocabulary_size=10, min_words=4, max_words=5, order=order
    )
    seen = {split: {r["source"] for r in corpus.read(split)} for split in corpus.splits}
    assert len(seen["train"]) > 1000
    assert not seen["train"] & (seen["dev"] | seen["test"])
    assert not seen["dev"] & seen["test"]


def test_the_same_seed_gives_the_same_pairs():
    command = (
        "from regard.data.synthetic.reorder import ReorderedSentences;"
        "print(list(ReorderedSentences(50, seed=7, fertility=0.3).read('train')))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        for seed in (1, 2)
    }
    assert told == {str(list(ReorderedSentences(50, seed=7, fertility=0.3).read("train")))}
    one, other = small(seed=7), small(seed=8)
    assert one.lexicon != other.lexicon
    assert one.example("train", 60) == next(islice(one.read("train"), 60, None))


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
    ("wrong", "words"),
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
def test_wrong_arguments(wrong, words, unchecked):
    with pytest.raises(ValueError, match=words):
        ReorderedSentences(**wrong)
    with pytest.raises(ValueError, match="not 'tset'; did you mean 'test'"):
        list(small().read("tset"))
