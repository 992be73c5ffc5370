"""Sentences joined, and bins that fit them."""

import pytest

from regard.metric.comparison import edges, joined

RECORDS = [{"source": s, "target": s.upper(), "links": "0-0"} for s in ("a", "b", "c d", "e", "f")]


def test_joined_by_hand():
    assert joined(RECORDS, 1) == [{"source": r["source"], "target": r["target"]} for r in RECORDS]
    sources = [record["source"] for record in joined(RECORDS, 3)]
    assert sources == ["a", "b", "c d", "e", "f", "a b", "c d e", "a b c d"]
    assert joined(RECORDS, 3)[-1] == {"source": "a b c d", "target": "A B C D"}
    assert [r["source"] for r in joined(RECORDS, 9)][-1] == "a b c d e f"
    with pytest.raises(ValueError, match="most must be at least 1, not 0"):
        joined(RECORDS, 0)


@pytest.mark.parametrize(
    ("longest", "wanted"),
    [
        (50, (10, 20, 30, 40, 50)),
        (21, (10, 20, 30, 40, 50)),
        (20, (5, 10, 15, 20, 25)),
        (11, (5, 10, 15, 20, 25)),
        (10, (2, 4, 6, 8, 10)),
        (1, (2, 4, 6, 8, 10)),
    ],
)
def test_edges(longest, wanted):
    assert edges(["a", "a " * longest]) == wanted
