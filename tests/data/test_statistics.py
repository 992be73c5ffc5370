"""Tests that statistics in bounded memory agree with plain counts."""

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


def add_pairs(counter, pairs):
    hashes = {text: text_hash(text) for text in {text for pair in pairs for text in pair}}
    for source, target in pairs:
        counter.add(hashes[source], hashes[target])
    return counter


@given(PAIRS)
def test_duplicates_match_a_plain_count(pairs):
    duplicates = add_pairs(Duplicates(), pairs)
    targets = {source: {t for s, t in pairs if s == source} for source, _ in pairs}
    assert duplicates.sampling_stride == 1
    assert duplicates.repeated_count == len(pairs) - len(set(pairs))
    assert duplicates.ambiguous_count == sum(
        len(source_targets) > 1 for source_targets in targets.values()
    )


def test_duplicates_are_estimated_in_bounded_memory():
    rng = random.Random(1)
    pairs = [(str(rng.randrange(5000)), str(rng.randrange(2))) for _ in range(40_000)]
    duplicates = add_pairs(Duplicates(max_pairs=1000), pairs)
    assert duplicates.sampling_stride in (8, 16)
    assert len(duplicates.pairs) <= 1000
    assert len(duplicates.first_targets) <= 1000
    assert len(duplicates.repeats) <= 1000
    assert len(duplicates.ambiguous_sources) <= 1000
    assert duplicates.repeated_count == pytest.approx(len(pairs) - len(set(pairs)), rel=0.15)
    assert duplicates.ambiguous_count == pytest.approx(5000, rel=0.15)


@given(PAIRS, PAIRS)
def test_leaks_match_a_plain_search(held_out_pairs, training_pairs):
    hashes = add_pairs(HeldOutHashes(), held_out_pairs)
    for source, target in training_pairs:
        hashes.add_training_pair(text_hash(source), text_hash(target))
    assert hashes.leaked_pairs == sum(pair in training_pairs for pair in held_out_pairs)
    assert hashes.leaked_sources == sum(
        source in [s for s, _ in training_pairs] for source, _ in held_out_pairs
    )


def test_anomalies_of_known_pairs():
    statistics = SplitStatistics()
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
        statistics.add({"source": source, "target": target})
    assert statistics.pairs == 8
    assert (statistics.empty_source, statistics.empty_target, statistics.identical) == (2, 1, 1)
    assert (
        statistics.replacement_characters,
        statistics.control_characters,
        statistics.not_nfc,
    ) == (1, 1, 1)
    assert statistics.first_indices == {
        "empty_source": 1,
        "empty_target": 2,
        "identical": 3,
        "replacement_characters": 4,
        "control_characters": 5,
        "not_nfc": 6,
    }


def test_unusual_length_ratios():
    statistics = SplitStatistics()
    for _ in range(9):
        statistics.add({"source": "x" * 20, "target": "y" * 40})
    usual = statistics.median_ratio_bin()
    assert not has_unusual_ratio("x" * 20, "y" * 40, usual)
    assert not has_unusual_ratio("x" * 20, "y" * 100, usual)
    assert has_unusual_ratio("x" * 20, "y" * 140, usual)
    assert has_unusual_ratio("x" * 40, "y" * 20, usual)
    assert not has_unusual_ratio("x", "y" * 19, usual)  # too short
    assert not has_unusual_ratio("", "y" * 90, usual)  # empty sides are counted separately


@given(st.lists(st.integers(0, 9), min_size=1), st.floats(0.01, 1))
def test_quantiles(numbers, share):
    value = quantile(Counter(numbers), share)
    count_up_to_value = sum(number <= value for number in numbers)
    assert count_up_to_value >= share * len(numbers) - 1e-6
    assert value == min(numbers) or sum(n < value for n in numbers) < share * len(numbers)


def test_locations(tmp_path):
    files = [tmp_path / name for name in ("a.tsv", "b.en", "b.de")]
    for file in files:
        file.write_text("a\tb\n")
    assert location(TextPairFiles(files[0]), "train", 0) == f"{files[0]}:1"
    assert location(TextPairFiles(files[1:]), "train", 4) == f"{files[1]} and {files[2]}:5"
    assert location(Dates(5), "dev", 2) == "dev, record 3"
