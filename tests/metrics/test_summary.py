"""Tests of ROUGE, repetition and copying."""

import re
from collections import Counter

import pytest

from regard.metrics import summary
from regard.metrics.summary import copy_rate, repetition_rate, rouge


def rouge_n(output: str, reference: str, size: int) -> float:
    """Return ROUGE-N by its definition, for words that stemming does not change."""
    output_ngrams, reference_ngrams = (
        Counter(zip(*(text.split()[start:] for start in range(size)), strict=False))
        for text in (output, reference)
    )
    shared = (output_ngrams & reference_ngrams).total()
    if not shared:
        return 0.0
    precision, recall = shared / output_ngrams.total(), shared / reference_ngrams.total()
    return 200 * precision * recall / (precision + recall)


def longest_common_subsequence(first: list[str], second: list[str]) -> int:
    """Return the length of the longest common subsequence."""
    if not first or not second:
        return 0
    if first[-1] == second[-1]:
        return longest_common_subsequence(first[:-1], second[:-1]) + 1
    return max(
        longest_common_subsequence(first[:-1], second),
        longest_common_subsequence(first, second[:-1]),
    )


def test_rouge_matches_its_definition():
    pairs = [("the cat sat on the mat", "the cat on mat sat"), ("a b c", "c b a"), ("x", "y")]
    outputs, references = zip(*pairs, strict=True)
    scores = rouge(outputs, references)
    for size in (1, 2):
        expected = sum(rouge_n(*pair, size) for pair in pairs) / len(pairs)
        assert scores.values[f"rouge{size}"] == pytest.approx(expected)
    common_lengths = [
        longest_common_subsequence(output.split(), reference.split()) for output, reference in pairs
    ]
    sizes = [(len(output.split()), len(reference.split())) for output, reference in pairs]
    expected = (
        sum(
            200 * common_length / (a + b)
            for common_length, (a, b) in zip(common_lengths, sizes, strict=True)
        )
        / 3
    )
    assert scores.values["rougeL"] == pytest.approx(expected)
    assert list(scores.values) == ["rouge1", "rouge2", "rougeL"]
    assert re.fullmatch(r"f1\|mean\|stem:yes\|refs:1\|rouge_score:[\d.]+", scores.signature)


def test_case_punctuation_and_endings_are_ignored():
    assert rouge(["Cats, running!"], ["cat runs"]).values["rouge2"] == 100
    assert rouge(["cats"], ["cat"], stem=False).values["rouge1"] == 0


def test_the_best_reference_counts():
    scores = rouge(["a b", "c"], [["x", "a b"], ["c"]])
    assert scores.values["rouge1"] == 100
    assert "refs:1-2:best" in scores.signature


def test_rouge_lsum_of_several_lines():
    scores = rouge(["a b\nc d"], ["c d\na b"])
    assert scores.values["rougeLsum"] == 100
    assert scores.values["rougeL"] == 50


def test_rouge_needs_its_package(monkeypatch):
    monkeypatch.setattr(summary, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=re.escape("pip install 'regard[rouge]'")):
        rouge(["a"], ["a"])
    with pytest.raises(ValueError, match="no outputs; give at least one"):
        rouge([], [])


def test_repetition_rate():
    assert repetition_rate(["a b c a b c"]) == pytest.approx(100 / 4)  # abc bca cab abc
    assert repetition_rate(["a a a a a", "a b c"]) == pytest.approx(100 * 2 / 4)
    assert repetition_rate(["a b c", "a b c"]) == 0  # outputs are independent
    assert repetition_rate(["a b"]) == repetition_rate([]) == 0


def test_copy_rate():
    assert copy_rate([["a", "b", "b", "x"], ["y"]], [["b", "a"], ["z"]]) == pytest.approx(
        100 * 3 / 5
    )
    assert copy_rate([[]], [["a"]]) == 0
