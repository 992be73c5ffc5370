"""Tests of concatenated records, length bins, and means over seeds."""

import math

import pytest

from regard.metrics.comparison import (
    ModelResult,
    concatenated_records,
    length_bin_edges,
    seed_spread,
    standard_deviation,
)

RECORDS = [{"source": s, "target": s.upper(), "links": "0-0"} for s in ("a", "b", "c d", "e", "f")]


def test_concatenated_records():
    assert concatenated_records(RECORDS, 1) == [
        {"source": r["source"], "target": r["target"]} for r in RECORDS
    ]
    sources = [record["source"] for record in concatenated_records(RECORDS, 3)]
    assert sources == ["a", "b", "c d", "e", "f", "a b", "c d e", "a b c d"]
    assert concatenated_records(RECORDS, 3)[-1] == {"source": "a b c d", "target": "A B C D"}
    assert [r["source"] for r in concatenated_records(RECORDS, 9)][-1] == "a b c d e f"
    with pytest.raises(ValueError, match="max_group_size must be at least 1, not 0"):
        concatenated_records(RECORDS, 0)


@pytest.mark.parametrize(
    ("max_words", "expected"),
    [
        (50, (10, 20, 30, 40, 50)),
        (21, (10, 20, 30, 40, 50)),
        (20, (5, 10, 15, 20, 25)),
        (11, (5, 10, 15, 20, 25)),
        (10, (2, 4, 6, 8, 10)),
        (1, (2, 4, 6, 8, 10)),
    ],
)
def test_length_bin_edges(max_words, expected):
    assert length_bin_edges(["a", "a " * max_words]) == expected


def test_seed_spread():
    """1, 2 and 6 have the mean 3 and the variance (4 + 1 + 9) / 2."""
    models = [
        ModelResult(
            f"m{n}", {"bleu": value, "aer": aer, "parameters": 5}, {"1-2": value, last: 1.0}
        )
        for n, (value, aer, last) in enumerate([(1.0, 0.5, "3+"), (2, None, "3+"), (6.0, 0.5, "x")])
    ]
    spread = seed_spread("m", models)
    assert spread.names == ["m0", "m1", "m2"]
    assert spread.mean == ModelResult(
        "m", {"bleu": 3.0, "aer": None, "parameters": 5}, {"1-2": 3.0}
    )
    assert spread.deviation.values["bleu"] == pytest.approx(math.sqrt(7))
    assert spread.deviation.values["aer"] is None
    assert spread.deviation.values["parameters"] == 0
    assert spread.deviation.by_length == {"1-2": pytest.approx(math.sqrt(7))}
    assert math.isnan(standard_deviation([math.inf, 1.0]))
    with pytest.raises(ValueError, match="at least two numbers, not 1"):
        seed_spread("m", models[:1])
