"""The memory as a cache: append, select, trim; older memories never change."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention.memory import Memory, MemoryStore, grid_to_slots


def piece(slots: int, padded: bool = False) -> Memory:
    lead = [(2, 1), (2, 3), (1, 1), ()][slots % 4]  # heads, or all rows, may share `valid`
    valid = torch.rand(*lead, slots) < 0.5 if padded else None
    return Memory(torch.randn(2, 3, slots, 4), torch.randn(2, 3, slots, 5), valid)


def full_valid_mask(memory: Memory) -> Tensor:
    return memory.valid_mask(memory.keys.shape[:-2])


def are_equal(first: Memory, second: Memory) -> bool:
    pairs = [
        (first.keys, second.keys),
        (first.values, second.values),
        (full_valid_mask(first), full_valid_mask(second)),
    ]
    return all(torch.equal(a, b) for a, b in pairs)


steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "trim", "select", "old"]),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=25,
)


@torch.no_grad()
def test_a_selection_does_not_share_valid():
    """Also if one row of `valid` holds for the whole batch."""
    keys, values = torch.randn(2, 1, 1, 4), torch.randn(2, 1, 1, 4)
    real, padding = torch.tensor([[[True]]]), torch.tensor([[[False]]])
    old = Memory(keys, values, real).append(Memory(keys, values, real))
    chosen = old.select(torch.tensor([1, 0])).append(Memory(keys, values, padding))
    old.append(Memory(keys, values, real))
    assert chosen.valid is not None
    assert chosen.valid.tolist() == [[[True, True, False]]]


@settings(max_examples=40)
@given(steps, st.booleans())
def test_a_cache_equals_a_concatenation(steps, padded: bool):
    """Compare any sequence of append, trim, select and return to an older memory with cat."""
    with torch.no_grad():
        memory = plain = piece(2, padded)
        history = [(memory, plain)]
        for verb, number, padded in steps:
            if verb == "append":
                later = piece(1 + number % 3, padded)
                memory, plain = memory.append(later), plain.concatenate(later)
            elif verb == "trim":
                memory, plain = (
                    memory.trim(number % (memory.slots + 1)),
                    plain.trim(number % (plain.slots + 1)),
                )
            elif verb == "select":
                rows = torch.tensor([number % 2, (number // 2) % 2])
                memory, plain = memory.select(rows), plain.select(rows)
            else:
                memory, plain = history[number % len(history)]
            history.append((memory, plain))
        for memory, plain in history:  # also the older ones
            assert are_equal(memory, plain)


def test_appending_copies_a_linear_number_of_slots(monkeypatch: pytest.MonkeyPatch):
    moved = []
    original = MemoryStore.from_memory
    monkeypatch.setattr(
        MemoryStore,
        "from_memory",
        staticmethod(lambda m, capacity: (moved.append(m.slots), original(m, capacity))[1]),
    )
    with torch.no_grad():
        memory = piece(1)
        for _ in range(999):
            memory = memory.append(piece(1))
    assert memory.slots == 1000
    assert len(moved) <= 8
    assert sum(moved) <= 2000


def test_select_keeps_spare_capacity(monkeypatch: pytest.MonkeyPatch):
    with torch.no_grad():
        memory = piece(1).append(piece(1)).select(torch.tensor([1, 1]))
        monkeypatch.setattr(MemoryStore, "from_memory", None)  # a new store would be a copy
        assert memory.append(piece(1)).slots == 3


def test_an_older_memory_is_selected_trimmed_and_continued_as_it_was():
    with torch.no_grad():
        old = piece(1).append(piece(1))
        new = old.append(piece(3))
        rows = torch.tensor([1, 0])
        assert old.select(rows).slots == 2
        assert torch.equal(old.select(rows).keys, old.keys[rows])
        before = new.keys.clone()
        assert old.append(piece(2)).slots == new.trim(2).append(piece(2)).slots == 4
        assert torch.equal(new.keys, before)


def test_gradients_flow_through_an_appended_memory():
    first, second = piece(2), piece(1)
    first.keys.requires_grad_()
    second.values.requires_grad_()
    memory = first.append(second)
    (memory.keys.sum() + memory.values.sum()).backward()
    assert first.keys.grad is not None
    assert second.values.grad is not None
    assert memory.store is None


def test_a_grid_is_read_in_reading_order():
    grid = torch.arange(12.0).view(1, 2, 2, 3)
    assert grid_to_slots(grid)[0].tolist() == [[0, 6], [1, 7], [2, 8], [3, 9], [4, 10], [5, 11]]


@pytest.mark.usefixtures("unchecked")
class TestBadInput:
    def test_keys_and_values_must_fit(self):
        with pytest.raises(
            ValueError, match=r"keys of shape \(2, 3, 4\) do not fit values of shape \(2, 5, 4\)"
        ):
            Memory(torch.zeros(2, 3, 4), torch.zeros(2, 5, 4))
        with pytest.raises(ValueError, match="at least two axes"):
            Memory(torch.zeros(3), torch.zeros(3))

    def test_valid_must_be_boolean_and_fit(self):
        keys = torch.zeros(2, 3, 4)
        with pytest.raises(ValueError, match="valid must be boolean"):
            Memory(keys, keys, torch.ones(2, 3))
        with pytest.raises(ValueError, match=r"valid has shape \(2, 4\)"):
            Memory(keys, keys, torch.ones(2, 4, dtype=torch.bool))

    def test_appended_memory_must_fit(self):
        memory = piece(2)
        with pytest.raises(ValueError, match="later has keys of shape"):
            memory.append(Memory(torch.zeros(1, 3, 1, 4), torch.zeros(1, 3, 1, 5)))
        with pytest.raises(ValueError, match="later has values of shape"):
            memory.append(Memory(torch.zeros(2, 3, 1, 4), torch.zeros(2, 3, 1, 6)))
        with pytest.raises(ValueError, match=r"later has keys of torch\.float64"):
            memory.append(Memory(torch.zeros(2, 3, 1, 4).double(), torch.zeros(2, 3, 1, 5)))

    def test_trim_within_bounds(self):
        with pytest.raises(ValueError, match="slots must be between 0 and 2, not 3"):
            piece(2).trim(3)
