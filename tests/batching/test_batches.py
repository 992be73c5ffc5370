"""Batches keep to their budget, lose nothing, and can be taken up again anywhere."""

import json
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.batching.batches import (
    Batches,
    InMemoryExamples,
    StreamedExamples,
    iterate_by_length,
    split_into_batches,
)
from regard.batching.example import Batch, Example, collate
from regard.text.special import END, PAD, START


def some(count: int, longest: int = 12) -> list[Example]:
    draw = random.Random(count)
    return [
        Example(i, [9] * draw.randint(0, longest), [8] * draw.randint(0, longest))
        for i in range(count)
    ]


def streamed_of(pairs: list[Example], seed: int = 0, buffer: int = 7) -> StreamedExamples:
    """Records of digits, some of which are left out when they are made into pairs."""

    def read():
        return ({"source": pair.source, "target": pair.target} for pair in pairs)

    def made(records):
        for number, record in enumerate(records):
            if record["source"]:
                yield Example(number, record["source"], record["target"])

    return StreamedExamples(read, made, seed, buffer)


def same(one: Batch, other: Batch) -> bool:
    return all(
        torch.equal(getattr(one, name), getattr(other, name))
        for name in one.__dataclass_fields__
        if name != "guide"  # tests/tasks/test_guide.py has batches with one
    )


def test_a_batch_by_hand():
    batch = collate([Example(4, [7, 8], [9]), Example(2, [], [5, 6, 7])])
    assert batch.indices.tolist() == [4, 2]
    assert batch.source.tolist() == [[7, 8, END], [END, PAD, PAD]]
    assert batch.source_valid.tolist() == [[True, True, True], [True, False, False]]
    assert batch.target_in.tolist() == [[START, 9, PAD, PAD], [START, 5, 6, 7]]
    assert batch.target_out.tolist() == [[9, END, PAD, PAD], [5, 6, 7, END]]
    assert batch.target_valid.sum(1).tolist() == [2, 4]
    assert batch.target_token_count == 6


@given(st.integers(1, 60), st.integers(1, 80), st.booleans())
def test_budget_and_completeness(count: int, budget: int, by_tokens: bool):
    pairs = some(count)
    groups = list(
        split_into_batches(pairs, budget if by_tokens else None, None if by_tokens else budget)
    )
    assert [pair for group in groups for pair in group] == pairs
    for group in groups:
        longest = max(max(len(p.source), len(p.target)) + 1 for p in group)
        assert len(group) == 1 or (longest * len(group) if by_tokens else len(group)) <= budget


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(1, 9), st.booleans(), st.integers(1, 3))
def test_resuming_gives_what_would_have_come(skip: int, more: int, streamed: bool, ranks: int):
    pairs = some(50)
    examples = streamed_of(pairs, seed=3) if streamed else InMemoryExamples(pairs, seed=3)

    def fresh() -> Batches:
        return Batches(
            examples, tokens_per_batch=60, seed=5, window_size=20, rank=ranks - 1, ranks=ranks
        )

    whole, resumed = fresh(), fresh()
    for _ in range(skip):
        next(whole)
    state = json.loads(json.dumps(whole.state_dict()))
    resumed.load_state_dict(state)
    for _ in range(more):
        assert same(next(whole), next(resumed))


@pytest.mark.parametrize("streamed", [False, True])
def test_every_epoch_has_every_example_in_another_order(streamed: bool):
    pairs = some(40)
    examples = streamed_of(pairs) if streamed else InMemoryExamples(pairs)
    wanted = [pair.index for pair in pairs if pair.source or not streamed]
    orders = [
        [pair.index for window in examples.windows(epoch, 16) for pair in window.examples]
        for epoch in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == wanted
    batches = Batches(examples, examples_per_batch=8, window_size=16)
    seen: list[int] = []
    while batches.epoch == 0:
        state = batches.state_dict()
        batch = next(batches)
        if batches.epoch == 0:
            seen += batch.indices.tolist()
            for row, number in zip(batch.source, batch.indices.tolist(), strict=True):
                assert row.tolist()[: len(pairs[number].source)] == pairs[number].source
    assert sorted(seen) == wanted
    assert (state["window"], state["given"], state["before"]) == (32, 1, [2, 2])


def test_a_stream_goes_on_without_cutting_into_tokens_what_was_before():
    examples, cut_up = streamed_of(some(90)), list[int]()
    made = examples.to_examples

    def counted(records):
        found = list(made(records))
        cut_up.append(len(found))
        return found

    examples.to_examples = counted
    batches = Batches(examples, examples_per_batch=4, window_size=30)
    for _ in range(16):
        next(batches)
    assert len(cut_up) == 3
    again = Batches(examples, examples_per_batch=4, window_size=30)
    again.load_state_dict(batches.state_dict())
    next(again)
    assert len(cut_up) == 4


def test_ranks_share_an_epoch():
    examples = InMemoryExamples(some(48))
    seen: list[int] = []
    for rank in range(2):
        batches = Batches(examples, examples_per_batch=8, rank=rank, ranks=2)
        seen += [i for _ in range(3) for i in next(batches).indices.tolist()]
    assert sorted(seen) == list(range(48))


def test_a_window_is_sorted_so_that_little_is_padding():
    def padding(window: int) -> float:
        batches = Batches(
            InMemoryExamples(some(2000, 40)), examples_per_batch=20, window_size=window
        )
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
            yield Example(i % 10, [4], [5])

    for window in StreamedExamples(read, lambda records: records, buffer=50).windows(0, size=10):
        given_out += len(window.examples)
    assert given_out == 1000
    assert most <= 62


def test_in_order_gives_each_once():
    pairs = some(30)
    batches = list(iterate_by_length(pairs, tokens_per_batch=40))
    assert sorted(i for b in batches for i in b.indices.tolist()) == list(range(30))
    longest = [int(b.source_valid.sum(1).max()) for b in batches]
    assert longest == sorted(longest)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: Batches(InMemoryExamples(some(3))),
            "either tokens_per_batch or examples_per_batch",
        ),
        (
            lambda: Batches(InMemoryExamples(some(3)), tokens_per_batch=5, examples_per_batch=5),
            "either tokens_per_batch or examples_per_batch",
        ),
        (
            lambda: Batches(InMemoryExamples(some(3)), tokens_per_batch=0),
            "tokens_per_batch must be positive, not 0",
        ),
        (
            lambda: Batches(InMemoryExamples(some(3)), examples_per_batch=1, rank=2, ranks=2),
            "rank must be from 0 to 1",
        ),
        (lambda: InMemoryExamples([]), "nothing to train on"),
        (lambda: StreamedExamples(list, list, buffer=0), "buffer must be positive"),
        (lambda: collate([]), "pairs are missing"),
        (
            lambda: next(Batches(StreamedExamples(list, list), examples_per_batch=1)),
            "fewer batches than ranks",
        ),
        (
            lambda: next(Batches(InMemoryExamples(some(3)), examples_per_batch=1, rank=4, ranks=5)),
            "fewer batches than ranks",
        ),
    ],
)
def test_bad_input(make, says: str):
    with pytest.raises(ValueError, match=says):
        make()
