"""Mixing and shuffling: everything once, in an order that a seed fixes and that can be resumed."""

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.mix import MixedCorpus, shuffled_stream


class Numbers:
    """A corpus that counts, and counts how often it was read."""

    def __init__(self, name, size, splits=("train", "dev")):
        self.name, self.size, self.splits, self.reads = name, size, splits, 0

    def read(self, split):
        self.reads += 1
        return iter([{"source": f"{self.name}{n}", "target": split} for n in range(self.size)])

    def describe(self):
        return self.name


def names(records):
    return [record["source"] for record in records]


class TestMix:
    def test_weights(self):
        mix = MixedCorpus([Numbers("a", 4000), Numbers("b", 4000)], [3, 1], seed=1)
        drawn = names(islice(mix.read("train"), 4000))
        assert 0.72 < sum(name.startswith("a") for name in drawn) / 4000 < 0.78

    def test_an_epoch_holds_everything(self):
        small, large = Numbers("a", 10), Numbers("b", 300)
        drawn = Counter(names(MixedCorpus([small, large], [1, 1]).read("train")))
        assert set(drawn) == {f"a{n}" for n in range(10)} | {f"b{n}" for n in range(300)}
        assert all(drawn[f"b{n}"] == 1 for n in range(300))
        assert small.reads > 10
        assert large.reads == 1

    def test_each_corpus_stays_in_order(self):
        drawn = names(MixedCorpus([Numbers("a", 50), Numbers("b", 50)], [1, 2]).read("train"))
        assert [name for name in drawn if name[0] == "a"][:50] == [f"a{n}" for n in range(50)]

    def test_the_seed_decides(self):
        def drawn(seed):
            return names(
                MixedCorpus([Numbers("a", 50), Numbers("b", 50)], [1, 1], seed=seed).read("train")
            )

        assert drawn(1) == drawn(1) != drawn(2)

    def test_dev_is_all_of_them(self):
        mix = MixedCorpus(
            [Numbers("a", 2), Numbers("b", 2, ("train", "test")), Numbers("c", 1)], [1, 1, 1]
        )
        assert mix.splits == ("train", "dev", "test")
        assert names(mix.read("dev")) == ["a0", "a1", "c0"]
        assert names(mix.read("test")) == ["b0", "b1"]
        assert mix.describe() == "mix: 33 % a | 33 % b | 33 % c"

    @pytest.mark.parametrize(
        ("corpora", "weights", "words"),
        [
            ([], [], "corpora are missing"),
            ([Numbers("a", 1)], [1, 2], "2 weights for 1 corpora"),
            ([Numbers("a", 1)], [0], "weights must be positive, not 0"),
            ([Numbers("a", 1)], [float("nan")], "weights must be positive, not nan"),
            ([Numbers("a", 1, ("dev",))], [1], "split must be one of dev, not 'train'"),
        ],
    )
    def test_wrong_arguments(self, corpora, weights, words):
        with pytest.raises(ValueError, match=words):
            MixedCorpus(corpora, weights)

    def test_an_empty_corpus_is_no_endless_loop(self):
        with pytest.raises(ValueError, match="b: nothing to train on"):
            list(MixedCorpus([Numbers("a", 90), Numbers("b", 0)], [1, 1]).read("train"))


@given(st.lists(st.integers()), st.integers(1, 20), st.text())
def test_shuffling_loses_nothing(things, buffer, seed):
    assert sorted(shuffled_stream(things, buffer, seed)) == sorted(things)
    assert list(shuffled_stream(things, buffer, seed)) == list(
        shuffled_stream(things, buffer, seed)
    )


def test_shuffling_reaches_as_far_as_the_buffer():
    order = list(shuffled_stream(range(10_000), 100, "seed"))
    assert order != sorted(order)
    assert max(number - place for place, number in enumerate(order)) <= 100
    assert list(shuffled_stream(range(50), 1, "seed")) == list(range(50))
    moved = sum(abs(number - place) for place, number in enumerate(order)) / len(order)
    assert 50 < moved < 200


def test_shuffling_is_fair_where_all_fits():
    """Of 3 things all 6 orders come, about equally often."""
    orders = Counter(tuple(shuffled_stream("abc", 9, str(seed))) for seed in range(1200))
    assert len(orders) == 6
    assert min(orders.values()) > 140


def test_shuffling_holds_no_more_than_the_buffer():
    given_out = 0

    def things():
        for number in range(1000):
            assert number - given_out <= 51
            yield number

    for _ in shuffled_stream(things(), 50, "seed"):
        given_out += 1
    assert given_out == 1000
