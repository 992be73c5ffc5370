"""Pairs in arrays are the pairs that were put in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.batching.example import Example
from regard.batching.packed import SHORT_ID_LIMIT, PackedExamples

IDS = st.lists(st.integers(0, 2 * SHORT_ID_LIMIT), max_size=6)


def plain(pair: Example) -> tuple[int, list[int], list[int]]:
    return pair.index, list(pair.source), list(pair.target)


@given(st.lists(st.tuples(st.integers(0, 9), IDS, IDS)))
def test_what_is_packed_is_what_was_given(pairs):
    packed = PackedExamples(Example(*pair) for pair in pairs)
    assert [plain(pair) for pair in packed] == pairs
    assert len(packed) == len(pairs)
    assert [plain(pair) for pair in packed[1:-1]] == pairs[1:-1]
    if pairs:
        assert plain(packed[-1]) == pairs[-1]
    with pytest.raises(IndexError):
        packed[len(pairs)]


def test_small_ids_take_two_bytes():
    packed = PackedExamples(Example(n, [SHORT_ID_LIMIT - 1] * 10, [5]) for n in range(100))
    assert packed.ids.itemsize * len(packed.ids) == 2200
    packed.append(Example(100, [], [SHORT_ID_LIMIT]))
    assert packed.ids.itemsize == 4
    assert list(packed[100].target) == [SHORT_ID_LIMIT]
    assert list(packed[0].source) == [SHORT_ID_LIMIT - 1] * 10
