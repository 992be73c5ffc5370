"""ROUGE, and what summaries repeat and copy."""

import re
from collections import Counter

import pytest

from regard.metrics import summary
from regard.metrics.summary import copy_rate, repetition_rate, rouge


def overlap(output: str, reference: str, size: int) -> float:
    """ROUGE-N from its definition, of texts whose words have no endings to be cut off."""
    one, other = (
        Counter(zip(*(text.split()[at:] for at in range(size)), strict=False))
        for text in (output, reference)
    )
    shared = (one & other).total()
    if not shared:
        return 0.0
    precision, recall = shared / one.total(), shared / other.total()
    return 200 * precision * recall / (precision + recall)


def common(one: list[str], other: list[str]) -> int:
    """The longest row of words that both have, gaps allowed."""
    if not one or not other:
        return 0
    if one[-1] == other[-1]:
        return common(one[:-1], other[:-1]) + 1
    return max(common(one[:-1], other), common(one, other[:-1]))


def test_rouge_is_its_definition():
    pairs = [("the cat sat on the mat", "the cat on mat sat"), ("a b c", "c b a"), ("x", "y")]
    outputs, references = zip(*pairs, strict=True)
    found = rouge(outputs, references)
    for size in (1, 2):
        wanted = sum(overlap(*pair, size) for pair in pairs) / len(pairs)
        assert found.values[f"rouge{size}"] == pytest.approx(wanted)
    rows = [common(one.split(), other.split()) for one, other in pairs]
    sizes = [(len(one.split()), len(other.split())) for one, other in pairs]
    wanted = sum(200 * row / (a + b) for row, (a, b) in zip(rows, sizes, strict=True)) / 3
    assert found.values["rougeL"] == pytest.approx(wanted)
    assert list(found.values) == ["rouge1", "rouge2", "rougeL"]
    assert re.fullmatch(r"f1\|mean\|stem:yes\|refs:1\|rouge_score:[\d.]+", found.signature)


def test_case_marks_and_endings_do_not_count():
    assert rouge(["Cats, running!"], ["cat runs"]).values["rouge2"] == 100
    assert rouge(["cats"], ["cat"], stem=False).values["rouge1"] == 0


def test_the_nearest_of_several_references_counts():
    found = rouge(["a b", "c"], [["x", "a b"], ["c"]])
    assert found.values["rouge1"] == 100
    assert "refs:1-2:best" in found.signature


def test_lines_are_compared_where_there_are_any():
    found = rouge(["a b\nc d"], ["c d\na b"])
    assert found.values["rougeLsum"] == 100
    assert found.values["rougeL"] == 50


def test_rouge_needs_its_package(monkeypatch):
    monkeypatch.setattr(summary, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=re.escape("pip install 'regard[rouge]'")):
        rouge(["a"], ["a"])
    with pytest.raises(ValueError, match="nothing to score"):
        rouge([], [])


def test_repeats_by_hand():
    assert repetition_rate(["a b c a b c"]) == pytest.approx(100 / 4)  # abc bca cab abc
    assert repetition_rate(["a a a a a", "a b c"]) == pytest.approx(100 * 2 / 4)
    assert repetition_rate(["a b c", "a b c"]) == 0  # each output for itself
    assert repetition_rate(["a b"]) == repetition_rate([]) == 0


def test_copies_by_hand():
    assert copy_rate([["a", "b", "b", "x"], ["y"]], [["b", "a"], ["z"]]) == pytest.approx(
        100 * 3 / 5
    )
    assert copy_rate([[]], [["a"]]) == 0
