"""Masks are predicates on positions; their tables are written out by hand."""

import torch

from regard.attention.masks import Mask, causal, local, padding, strictly_causal
from regard.attention.memory import Memory


def table(mask: Mask, queries: int, slots: int, start: int | None = 0) -> list[str]:
    memory = Memory(torch.zeros(1, slots, 1), torch.zeros(1, slots, 1))
    allowed = memory.allowed_slots(queries, mask, start)
    assert allowed is not None
    full = allowed.expand(queries, slots)
    return ["".join(".#"[int(may)] for may in row) for row in full.tolist()]


def test_causal():
    assert table(causal, 3, 3) == ["#..", "##.", "###"]
    assert table(strictly_causal, 3, 3) == ["...", "#..", "##."]


def test_queries_are_the_last_positions_by_default():
    assert table(causal, 2, 4, start=None) == ["###.", "####"]
    assert table(causal, 2, 4, start=0) == ["#...", "##.."]
    assert table(strictly_causal, 1, 4, start=None) == ["###."]


def test_local_is_a_window_around_the_step():
    assert table(local(1), 4, 4) == ["##..", "###.", ".###", "..##"]
    assert table(local(1), 1, 3, start=5) == ["..."]


def test_compositions():
    assert table(causal & local(1), 4, 4) == ["#...", "##..", ".##.", "..##"]
    assert table(strictly_causal | ~causal, 3, 3) == [".##", "#.#", "##."]
    assert table(~local(1) & causal, 4, 4) == ["....", "....", "#...", "##.."]
    assert table(Mask(lambda query, slot: (query + slot) % 2 == 0), 2, 3) == ["#.#", ".#."]


def test_padding_as_a_mask_is_valid():
    lengths = torch.tensor([2, 0, 3])
    keys = torch.randn(3, 3, 2)
    masked = Memory(keys, keys).allowed_slots(2, padding(lengths) & causal, None)
    valid = torch.arange(3) < lengths[:, None]
    assert masked is not None
    assert torch.equal(masked, Memory(keys, keys, valid).allowed_slots(2, causal, None))


def test_no_mask_where_all_slots_are_allowed():
    memory = Memory(torch.zeros(1, 3, 1), torch.zeros(1, 3, 1))
    assert memory.allowed_slots(1, causal, None) is None
    assert memory.allowed_slots(2, causal, 2) is None
    assert memory.allowed_slots(3, None, None) is None
