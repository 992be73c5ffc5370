"""Examples in arrays equal the examples that were packed."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.batching.example import Example
from regard.batching.packed import SHORT_ID_LIMIT, PackedExamples

IDS = st.lists(st.integers(0, 2 * SHORT_ID_LIMIT), max_size=6)


@dataclass(frozen=True)
class LabeledIds:
    """An example with a number before its ids and one after them."""

    index: int
    first: int
    ids: Sequence[int]
    last: int

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.ids), 1


def as_tuple(example: Example) -> tuple[int, list[int], list[int]]:
    return example.index, list(example.source), list(example.target)


@given(st.lists(st.tuples(st.integers(0, 9), IDS, IDS)))
def test_unpacked_examples_equal_the_packed_ones(values):
    packed = PackedExamples(Example(*fields) for fields in values)
    assert [as_tuple(example) for example in packed] == values
    assert len(packed) == len(values)
    assert [as_tuple(example) for example in packed[1:-1]] == values[1:-1]
    if values:
        assert as_tuple(packed[-1]) == values[-1]
    with pytest.raises(IndexError):
        packed[len(values)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99), IDS, st.integers(0, 99))))
def test_numbers_are_packed_beside_ids(values):
    packed = PackedExamples(LabeledIds(*fields) for fields in values)
    assert [(e.index, e.first, list(e.ids), e.last) for e in packed] == values
    assert all(isinstance(example, LabeledIds) for example in packed)


def test_small_ids_take_two_bytes():
    packed = PackedExamples(Example(n, [SHORT_ID_LIMIT - 1] * 10, [5]) for n in range(100))
    assert packed.ids.itemsize * len(packed.ids) == 2200
    packed.append(Example(100, [], [SHORT_ID_LIMIT]))
    assert packed.ids.itemsize == 4
    assert list(packed[100].target) == [SHORT_ID_LIMIT]
    assert list(packed[0].source) == [SHORT_ID_LIMIT - 1] * 10


def test_an_example_must_be_a_dataclass(unchecked: None):
    with pytest.raises(TypeError, match="an example must be a dataclass, not tuple"):
        PackedExamples([(0, [1])])
