"""Batches stay within their budget, hold every example once, and can be resumed anywhere."""

import json
import random
from functools import partial

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
from regard.batching.example import Batch, Example, ExampleSize, collate, with_index
from regard.text.special import END, PAD, START

PairBatches = partial(Batches, collate=collate)


def random_examples(count: int, max_length: int = 12) -> list[Example]:
    rng = random.Random(count)
    return [
        Example(i, [9] * rng.randint(0, max_length), [8] * rng.randint(0, max_length))
        for i in range(count)
    ]


def stream(examples: list[Example], seed: int = 0, buffer: int = 7) -> StreamedExamples[Example]:
    """Return a stream of these examples, without those that have an empty source."""

    def read():
        return ({"source": example.source, "target": example.target} for example in examples)

    def to_examples(records):
        for index, record in enumerate(records):
            if record["source"]:
                yield Example(index, record["source"], record["target"])

    return StreamedExamples(read, to_examples, seed, buffer)


def are_equal(first: Batch, second: Batch) -> bool:
    return all(
        torch.equal(getattr(first, name), getattr(second, name))
        for name in first.__dataclass_fields__
        if name != "guide"  # tests/tasks/translate/test_guide.py has batches with one
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
    examples = random_examples(count)
    groups = list(
        split_into_batches(examples, budget if by_tokens else None, None if by_tokens else budget)
    )
    assert [example for group in groups for example in group] == examples
    for group in groups:
        max_length = max(max(len(e.source), len(e.target)) + 1 for e in group)
        assert len(group) == 1 or (max_length * len(group) if by_tokens else len(group)) <= budget


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(1, 9), st.booleans(), st.integers(1, 3))
def test_resumed_batches_equal_those_without_interruption(
    skip: int, more: int, streamed: bool, ranks: int
):
    source = random_examples(50)
    examples = stream(source, seed=3) if streamed else InMemoryExamples(source, seed=3)

    def new_batches() -> Batches[Example, Batch]:
        batches = PairBatches(examples, tokens_per_batch=60, seed=5, window_size=20)
        batches.take_share(ranks - 1, ranks)
        return batches

    uninterrupted, resumed = new_batches(), new_batches()
    for _ in range(skip):
        next(uninterrupted)
    state = json.loads(json.dumps(uninterrupted.state_dict()))
    resumed.load_state_dict(state)
    for _ in range(more):
        assert are_equal(next(uninterrupted), next(resumed))


@pytest.mark.parametrize("streamed", [False, True])
def test_every_epoch_has_every_example_in_another_order(streamed: bool):
    source = random_examples(40)
    examples = stream(source) if streamed else InMemoryExamples(source)
    expected = [example.index for example in source if example.source or not streamed]
    orders = [
        [example.index for window in examples.windows(epoch, 16) for example in window.examples]
        for epoch in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == expected
    batches = PairBatches(examples, examples_per_batch=8, window_size=16)
    indices: list[int] = []
    while batches.epoch == 0:
        state = batches.state_dict()
        batch = next(batches)
        if batches.epoch == 0:
            indices += batch.indices.tolist()
            for row, index in zip(batch.source, batch.indices.tolist(), strict=True):
                assert row.tolist()[: len(source[index].source)] == source[index].source
    assert sorted(indices) == expected
    assert (state["window"], state["given"], state["before"]) == (32, 1, [2, 2])


def test_a_resumed_stream_tokenizes_no_earlier_window():
    examples, window_sizes = stream(random_examples(90)), list[int]()
    to_examples = examples.to_examples

    def counted(records):
        window = list(to_examples(records))
        window_sizes.append(len(window))
        return window

    examples.to_examples = counted
    batches = PairBatches(examples, examples_per_batch=4, window_size=30)
    for _ in range(16):
        next(batches)
    assert len(window_sizes) == 3
    resumed = PairBatches(examples, examples_per_batch=4, window_size=30)
    resumed.load_state_dict(batches.state_dict())
    next(resumed)
    assert len(window_sizes) == 4


def test_a_sorted_window_has_little_padding():
    def padding(window_size: int) -> float:
        batches = PairBatches(
            InMemoryExamples(random_examples(2000, 40)),
            examples_per_batch=20,
            window_size=window_size,
        )
        first_batches = [next(batches) for _ in range(100)]
        token_count = sum(int(b.target_valid.sum()) for b in first_batches)
        return 1 - token_count / sum(b.target_valid.numel() for b in first_batches)

    assert padding(2000) < 0.03 < 0.3 < padding(20)


def test_a_stream_holds_no_more_than_its_buffer():
    done, max_held = 0, 0

    def read():
        nonlocal max_held
        for i in range(1000):
            max_held = max(max_held, i - done)
            yield Example(i % 10, [4], [5])

    for window in StreamedExamples(read, lambda records: records, buffer=50).windows(0, size=10):
        done += len(window.examples)
    assert done == 1000
    assert max_held <= 62


def test_iterating_by_length_yields_every_example_once():
    examples = random_examples(30)
    batches = list(iterate_by_length(examples, collate=collate, tokens_per_batch=40))
    assert sorted(i for b in batches for i in b.indices.tolist()) == list(range(30))
    max_lengths = [int(b.source_valid.sum(1).max()) for b in batches]
    assert max_lengths == sorted(max_lengths)


def test_an_example_gets_another_index():
    assert with_index(Example(3, [4], [5]), 7) == Example(7, [4], [5])
    assert with_index(ExampleSize(3, (1, 2)), 7) == ExampleSize(7, (1, 2))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: PairBatches(InMemoryExamples(random_examples(3))),
            "either tokens_per_batch or examples_per_batch",
        ),
        (
            lambda: PairBatches(
                InMemoryExamples(random_examples(3)), tokens_per_batch=5, examples_per_batch=5
            ),
            "either tokens_per_batch or examples_per_batch",
        ),
        (
            lambda: PairBatches(InMemoryExamples(random_examples(3)), tokens_per_batch=0),
            "tokens_per_batch must be positive, not 0",
        ),
        (
            lambda: PairBatches(
                InMemoryExamples(random_examples(3)), examples_per_batch=1
            ).take_share(2, 2),
            "rank must be from 0 to 1",
        ),
        (lambda: InMemoryExamples([]), "nothing to train on"),
        (lambda: StreamedExamples(list, list, buffer=0), "buffer must be positive"),
        (lambda: collate([]), "examples are missing"),
        (
            lambda: next(PairBatches(StreamedExamples(list, list), examples_per_batch=1)),
            "an epoch has no example",
        ),
    ],
)
def test_bad_input(build, message: str):
    with pytest.raises(ValueError, match=message):
        build()
