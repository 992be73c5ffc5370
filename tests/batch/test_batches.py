"""Batches keep to their budget, lose nothing, and can be taken up again anywhere."""

import json
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.batch.batches import Batches, Stored, Streamed, cut, in_order
from regard.batch.pair import Batch, Pair, collate
from regard.text.special import END, PAD, START


def some(count: int, longest: int = 12) -> list[Pair]:
    draw = random.Random(count)
    return [
        Pair(i, [9] * draw.randint(0, longest), [8] * draw.randint(0, longest))
        for i in range(count)
    ]


def same(one: Batch, other: Batch) -> bool:
    return all(
        torch.equal(getattr(one, name), getattr(other, name))
        for name in one.__dataclass_fields__
        if name != "guide"  # tests/tasks/test_guide.py has batches with one
    )


def test_a_batch_by_hand():
    batch = collate([Pair(4, [7, 8], [9]), Pair(2, [], [5, 6, 7])])
    assert batch.numbers.tolist() == [4, 2]
    assert batch.source.tolist() == [[7, 8, END], [END, PAD, PAD]]
    assert batch.source_valid.tolist() == [[True, True, True], [True, False, False]]
    assert batch.target_in.tolist() == [[START, 9, PAD, PAD], [START, 5, 6, 7]]
    assert batch.target_out.tolist() == [[9, END, PAD, PAD], [5, 6, 7, END]]
    assert batch.target_valid.sum(1).tolist() == [2, 4]
    assert batch.tokens == 6


@given(st.integers(1, 60), st.integers(1, 80), st.booleans())
def test_budget_and_completeness(count: int, budget: int, by_tokens: bool):
    pairs = some(count)
    groups = list(cut(pairs, budget if by_tokens else None, None if by_tokens else budget))
    assert [pair for group in groups for pair in group] == pairs
    for group in groups:
        longest = max(max(len(p.source), len(p.target)) + 1 for p in group)
        assert len(group) == 1 or (longest * len(group) if by_tokens else len(group)) <= budget


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(1, 9), st.booleans(), st.integers(1, 3))
def test_resuming_gives_what_would_have_come(skip: int, more: int, streamed: bool, ranks: int):
    pairs = some(50)
    examples = Streamed(lambda: pairs, seed=3, buffer=7) if streamed else Stored(pairs, seed=3)

    def fresh() -> Batches:
        return Batches(examples, tokens=60, seed=5, window=20, rank=ranks - 1, ranks=ranks)

    whole, resumed = fresh(), fresh()
    for _ in range(skip):
        next(whole)
    state = json.loads(json.dumps(whole.state()))
    resumed.restore(state)
    for _ in range(more):
        assert same(next(whole), next(resumed))


@pytest.mark.parametrize("streamed", [False, True])
def test_every_epoch_has_every_example_in_another_order(streamed: bool):
    pairs = some(40)
    examples = Streamed(lambda: pairs, buffer=9) if streamed else Stored(pairs)
    orders = [[pair.number for pair in examples.stream(epoch)] for epoch in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    for order in orders:
        assert sorted(order) == list(range(40))
    batches = Batches(examples, sentences=8, window=16)
    seen: list[int] = []
    while batches.epoch == 0:
        state = batches.state()
        batch = next(batches)
        if batches.epoch == 0:
            seen += batch.numbers.tolist()
    assert sorted(seen) == list(range(40))
    assert state["given"] == 5


def test_ranks_share_an_epoch():
    examples = Stored(some(48))
    seen: list[int] = []
    for rank in range(2):
        batches = Batches(examples, sentences=8, rank=rank, ranks=2)
        seen += [i for _ in range(3) for i in next(batches).numbers.tolist()]
    assert sorted(seen) == list(range(48))


def test_a_window_is_sorted_so_that_little_is_padding():
    def padding(window: int) -> float:
        batches = Batches(Stored(some(2000, 40)), sentences=20, window=window)
        made = [next(batches) for _ in range(100)]
        real = sum(int(b.target_valid.sum()) for b in made)
        return 1 - real / sum(b.target_valid.numel() for b in made)

    assert padding(2000) < 0.03 < 0.3 < padding(20)


def test_a_stream_holds_no_more_than_its_buffer():
    given_out, most = 0, 0

    def read():
        nonlocal most
        for i in range(1000):
            most = max(most, i - given_out)
            yield Pair(i, [4], [5])

    for _ in Streamed(read, buffer=50).stream(0):
        given_out += 1
    assert given_out == 1000
    assert most <= 52


def test_in_order_gives_each_once():
    pairs = some(30)
    batches = list(in_order(pairs, tokens=40))
    assert sorted(i for b in batches for i in b.numbers.tolist()) == list(range(30))
    longest = [int(b.source_valid.sum(1).max()) for b in batches]
    assert longest == sorted(longest)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Batches(Stored(some(3))), "either tokens or sentences"),
        (lambda: Batches(Stored(some(3)), tokens=5, sentences=5), "either tokens or sentences"),
        (lambda: Batches(Stored(some(3)), tokens=0), "tokens must be positive, not 0"),
        (
            lambda: Batches(Stored(some(3)), sentences=1, rank=2, ranks=2),
            "rank must be from 0 to 1",
        ),
        (lambda: Stored([]), "nothing to train on"),
        (lambda: Streamed(list, buffer=0), "buffer must be positive"),
        (lambda: collate([]), "pairs are missing"),
        (lambda: next(Batches(Streamed(list), sentences=1)), "fewer batches than ranks"),
    ],
)
def test_bad_input(make, says: str):
    with pytest.raises(ValueError, match=says):
        make()
