"""Tests of mixed corpora and of shuffling in bounded memory."""

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.mix import MixedCorpus, shuffled_stream


class Numbers:
    """A corpus of numbers that counts its readers."""

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

    def test_an_epoch_contains_all_records(self):
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

    def test_dev_and_test_are_concatenated(self):
        mix = MixedCorpus(
            [Numbers("a", 2), Numbers("b", 2, ("train", "test")), Numbers("c", 1)], [1, 1, 1]
        )
        assert mix.splits == ("train", "dev", "test")
        assert names(mix.read("dev")) == ["a0", "a1", "c0"]
        assert names(mix.read("test")) == ["b0", "b1"]
        assert mix.describe() == "mix: 33 % a | 33 % b | 33 % c"

    @pytest.mark.parametrize(
        ("corpora", "weights", "message"),
        [
            ([], [], "corpora are empty"),
            ([Numbers("a", 1)], [1, 2], "2 weights for 1 corpora"),
            ([Numbers("a", 1)], [0], "weights must be positive, not 0"),
            ([Numbers("a", 1)], [float("nan")], "weights must be positive, not nan"),
            ([Numbers("a", 1, ("dev",))], [1], "split must be one of dev, not 'train'"),
        ],
    )
    def test_bad_arguments(self, corpora, weights, message):
        with pytest.raises(ValueError, match=message):
            MixedCorpus(corpora, weights)

    def test_an_empty_corpus_is_an_error(self):
        with pytest.raises(ValueError, match="b: no training records"):
            list(MixedCorpus([Numbers("a", 90), Numbers("b", 0)], [1, 1]).read("train"))


@given(st.lists(st.integers()), st.integers(1, 20), st.text())
def test_shuffling_keeps_all_items(items, buffer, seed):
    assert sorted(shuffled_stream(items, buffer, seed)) == sorted(items)
    assert list(shuffled_stream(items, buffer, seed)) == list(shuffled_stream(items, buffer, seed))


def test_shuffling_distance_is_bounded_by_the_buffer():
    order = list(shuffled_stream(range(10_000), 100, "seed"))
    assert order != sorted(order)
    assert max(number - position for position, number in enumerate(order)) <= 100
    assert list(shuffled_stream(range(50), 1, "seed")) == list(range(50))
    mean_distance = sum(abs(number - position) for position, number in enumerate(order)) / len(
        order
    )
    assert 50 < mean_distance < 200


def test_shuffling_is_uniform_if_all_items_fit():
    """All 6 orders of 3 items are about equally frequent."""
    orders = Counter(tuple(shuffled_stream("abc", 9, str(seed))) for seed in range(1200))
    assert len(orders) == 6
    assert min(orders.values()) > 140


def test_shuffling_memory_is_bounded_by_the_buffer():
    yielded = 0

    def items():
        for number in range(1000):
            assert number - yielded <= 51
            yield number

    for _ in shuffled_stream(items(), 50, "seed"):
        yielded += 1
    assert yielded == 1000
