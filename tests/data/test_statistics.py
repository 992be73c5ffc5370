"""Counting in bounded memory: what is counted is what a plain count finds."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.corpus import location
from regard.data.formats.text_pairs import TextPairFiles
from regard.data.statistics import (
    Duplicates,
    HeldOutHashes,
    SplitStatistics,
    has_unusual_ratio,
    quantile,
    text_hash,
)
from regard.data.synthetic.dates import Dates

WORDS = st.sampled_from("abcdefg")
PAIRS = st.lists(st.tuples(WORDS, WORDS))


def added(known, pairs):
    for source, target in pairs:
        known.add(text_hash(source), text_hash(target))
    return known


@given(PAIRS)
def test_duplicates_are_those_of_a_plain_count(pairs):
    found = added(Duplicates(), pairs)
    targets = {source: {t for s, t in pairs if s == source} for source, _ in pairs}
    assert found.sampling_stride == 1
    assert found.repeated_count == len(pairs) - len(set(pairs))
    assert found.ambiguous_count == sum(len(some) > 1 for some in targets.values())


def test_of_many_sources_only_some_are_remembered():
    draw = random.Random(1)
    pairs = [(str(draw.randrange(5000)), str(draw.randrange(2))) for _ in range(40_000)]
    found = added(Duplicates(max_pairs=1000), pairs)
    assert found.sampling_stride in (8, 16)
    assert (
        max(map(len, (found.pairs, found.first_targets, found.repeats, found.ambiguous_sources)))
        <= 1000
    )
    assert found.repeated_count == pytest.approx(len(pairs) - len(set(pairs)), rel=0.15)
    assert found.ambiguous_count == pytest.approx(5000, rel=0.15)


@given(PAIRS, PAIRS)
def test_leaks_are_those_of_a_plain_search(held, train):
    found = added(HeldOutHashes(), held)
    for source, target in train:
        found.add_training_pair(text_hash(source), text_hash(target))
    assert found.leaked_pairs == sum(pair in train for pair in held)
    assert found.leaked_sources == sum(source in [s for s, _ in train] for source, _ in held)


def test_what_is_odd_about_pairs_by_hand():
    census = SplitStatistics()
    for source, target in [
        ("a", "b"),
        ("", "b"),
        (" ", "\t"),
        ("same", "same"),
        ("bro\ufffdken", "x"),
        ("bell\x07", "x"),
        ("e\u0301", "é"),
        ("é", "e"),
    ]:
        census.add({"source": source, "target": target})
    assert census.pairs == 8
    assert (census.empty_source, census.empty_target, census.identical) == (2, 1, 1)
    assert (census.replacement_characters, census.control_characters, census.not_nfc) == (1, 1, 1)
    assert census.first_indices == {
        "empty_source": 1,
        "empty_target": 2,
        "identical": 3,
        "replacement_characters": 4,
        "control_characters": 5,
        "not_nfc": 6,
    }


def test_lengths_far_off():
    census = SplitStatistics()
    for _ in range(9):
        census.add({"source": "x" * 20, "target": "y" * 40})
    usual = census.median_ratio_bin()
    assert not has_unusual_ratio("x" * 20, "y" * 40, usual)
    assert not has_unusual_ratio("x" * 20, "y" * 100, usual)
    assert has_unusual_ratio("x" * 20, "y" * 140, usual)
    assert has_unusual_ratio("x" * 40, "y" * 20, usual)
    assert not has_unusual_ratio("x", "y" * 19, usual)  # too short to tell
    assert not has_unusual_ratio("", "y" * 90, usual)  # empty sides are counted by themselves


@given(st.lists(st.integers(0, 9), min_size=1), st.floats(0.01, 1))
def test_quantiles(numbers, share):
    found = quantile(Counter(numbers), share)
    below = sum(number <= found for number in numbers)
    assert below >= share * len(numbers) - 1e-6
    assert found == min(numbers) or sum(n < found for n in numbers) < share * len(numbers)


def test_places(tmp_path):
    files = [tmp_path / name for name in ("a.tsv", "b.en", "b.de")]
    for file in files:
        file.write_text("a\tb\n")
    assert location(TextPairFiles(files[0]), "train", 0) == f"{files[0]}:1"
    assert location(TextPairFiles(files[1:]), "train", 4) == f"{files[1]} and {files[2]}:5"
    assert location(Dates(5), "dev", 2) == "dev, record 3"
