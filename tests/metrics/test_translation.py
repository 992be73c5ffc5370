"""Tests of translation metrics against values by hand."""

import logging
import math
from functools import partial

import pytest

from regard.metrics.translation import MetricScore, bleu, chrf, exact_match, score_by_length, ter

OUTPUTS = ["the cat sat on the mat .", "a dog barks"]
REFERENCES = ["the cat sat on a mat .", "a dog barked"]


def test_known_bleu():
    """8 of 10 unigrams, 5 of 8 bigrams, 2 of 6 trigrams and 1 of 4 four-grams are right."""
    score = bleu(OUTPUTS, REFERENCES, tokenize="none", smooth="none", force=True)
    expected = 100 * (8 / 10 * 5 / 8 * 2 / 6 * 1 / 4) ** 0.25
    assert score.value == pytest.approx(expected)
    assert "80.0/62.5/33.3/25.0" in score.detail
    assert "hyp_len = 10 ref_len = 10" in score.detail
    assert str(score) == f"{score.detail} {score.signature}"


def test_brevity_penalty():
    """Four words for five have the penalty exp(1 - 5/4)."""
    score = bleu(["a b c d"], ["a b c d e"], tokenize="none", force=True)
    assert score.value == pytest.approx(100 * math.exp(-1 / 4))


def test_signatures():
    def signature(**settings) -> str:
        return bleu(OUTPUTS, REFERENCES, **settings).signature

    assert signature().startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    papers = signature(tokenize="none", smooth="none", force=True)
    assert papers.startswith("nrefs:1|case:mixed|eff:no|tok:none|smooth:none|version:")
    assert signature(lower=True).startswith("nrefs:1|case:lc|")
    assert chrf(OUTPUTS, REFERENCES).signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|")
    assert "|nw:2|" in chrf(OUTPUTS, REFERENCES, word_order=2).signature
    assert ter(OUTPUTS, REFERENCES).signature.startswith("nrefs:1|case:lc|tok:tercom|norm:no|")
    assert ter(OUTPUTS, REFERENCES, lower=False).signature.startswith("nrefs:1|case:mixed|")


def test_lower_case_is_an_option():
    assert bleu(["A B C D"], ["a b c d"], lower=True).value == pytest.approx(100)
    assert bleu(["A B C D"], ["a b c d"]).value < 50
    assert chrf(["AB"], ["ab"], lower=True).value == pytest.approx(100)
    assert chrf(["AB"], ["ab"]).value == 0
    assert ter(["A b"], ["a b"]).value == 0
    assert ter(["A b"], ["a b"], lower=False).value == 50


def test_tokenization_changes_bleu():
    """`mat.` is two tokens for 13a, and one for "none"."""
    output, reference = ["the cat sat on the mat."], ["the cat sat on the mat ."]
    assert bleu(output, reference).value == pytest.approx(100)
    assert bleu(output, reference, tokenize="none").value < 80


def test_force_silences_the_warning(caplog):
    lines = ["a b c d ."] * 100
    with caplog.at_level(logging.WARNING):
        bleu(lines, lines, force=True)
        assert not caplog.records
        bleu(lines, lines)
        assert "tokenized period" in caplog.text


def test_known_chrf():
    """`ab` for `abc` has unigrams 2/2 and 2/3, bigrams 1/1 and 1/2, and no trigrams."""
    score = chrf(["ab"], ["abc"])
    precision, recall = (1 + 1) / 2, (2 / 3 + 1 / 2) / 2
    assert score.value == pytest.approx(100 * 5 * precision * recall / (4 * precision + recall))


def test_known_ter():
    """A wrong word and a shift of any length are one edit each."""
    assert ter(["a b c x"], ["a b c d"]).value == 25
    assert ter(["c d a b"], ["a b c d"]).value == 25
    assert ter(["a b c d"], ["a b c d"]).value == 0
    assert ter(["a , b"], ["a b"], punctuation=False).value == 0


def test_several_references():
    """The first output has two references, the second one."""
    outputs, references = ["a b c d", "e f g h"], [["x", "a b c d"], ["e f g h"]]
    score = bleu(outputs, references)
    assert score.value == pytest.approx(100)
    assert score.signature.startswith("nrefs:var|")
    assert exact_match(outputs, references) == 100
    assert exact_match(["a", "b", "c", "d"], ["a", "x", ["y", "c"], "D"]) == 50


def test_exact_match_is_exact():
    assert exact_match(["1994-05-03", "1994-05-03 "], ["1994-05-03", "1994-05-03"]) == 50


def test_score_by_length():
    sources = ["one", "one two", "one two three", "", "a b c d e f"]
    outputs = ["a b c d"] * 5
    references = ["a b c d", "a b c d", "x", "a b c d", "a b c d"]
    bins = score_by_length(sources, outputs, references, edges=(2, 4, 5))
    assert [(length_bin.name, length_bin.sentences) for length_bin in bins] == [
        ("1-2", 3),
        ("3-4", 1),
        ("6+", 1),
    ]
    assert [length_bin.score.value for length_bin in bins] == pytest.approx([100, 0, 100])
    plain = partial(bleu, tokenize="none", force=True)
    assert (
        "tok:none" in score_by_length(sources, outputs, references, score=plain)[0].score.signature
    )
    assert isinstance(bins[0].score, MetricScore)


def test_one_bin_is_the_corpus():
    bins = score_by_length(OUTPUTS, OUTPUTS, REFERENCES, edges=(100,))
    assert [length_bin.score for length_bin in bins] == [bleu(OUTPUTS, REFERENCES)]


@pytest.mark.parametrize("metric", [bleu, chrf, ter, exact_match])
def test_bad_lists(metric, unchecked):
    with pytest.raises(ValueError, match="2 outputs, but 1 references"):
        metric(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="no outputs; give at least one"):
        metric([], [])
    with pytest.raises(ValueError, match="line 2 has no references"):
        metric(["a", "b"], [["a"], []])
    with pytest.raises(ValueError, match="lists of lines, not one string"):
        metric("ab", "ab")


def test_bad_bins():
    with pytest.raises(ValueError, match="1 sources, but 2 outputs"):
        score_by_length(["a"], OUTPUTS, REFERENCES)
    for edges in [(), (3, 2), (2, 2), (0, 5)]:
        with pytest.raises(ValueError, match="edges must be positive and increasing"):
            score_by_length(OUTPUTS, OUTPUTS, REFERENCES, edges=edges)
