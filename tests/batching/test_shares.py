"""Processes that share batches see every example once an epoch, in parts of about equal size."""

import gzip
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.batching.batches import Batches, InMemoryExamples, StreamedExamples
from regard.batching.example import Batch, Example, collate
from regard.batching.shares import SharedSource, balanced_shares, row_share
from regard.batching.text_windows import ContiguousWindows, RandomWindows
from regard.data.build import build_corpus
from regard.data.corpus import Record
from regard.tasks.load import resolve_settings

LINES = [f"{'a ' * (i % 7 + 1)}{i}\t{'b ' * (i % 5 + 1)}{i}" for i in range(53)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shares")
    text = "".join(f"{line}\n" for line in LINES).encode()
    (folder / "pairs.tsv").write_bytes(text)
    (folder / "pairs.tsv.gz").write_bytes(gzip.compress(text))
    return {"plain": folder / "pairs.tsv", "gzip": folder / "pairs.tsv.gz"}


def to_examples(records: Iterable[Record]) -> Iterator[Example]:
    for index, record in enumerate(records):
        source, target = (record[side].split() for side in ("source", "target"))
        yield Example(index, range(len(source)), range(len(target)))


def source_of(path: Path, streamed: bool, budget: int, seed: int) -> Batches[Example, Batch]:
    table = {"kind": "files", "train": str(path), "held_out": 0.0}
    corpus = build_corpus(resolve_settings({"data": table}).data)
    if streamed:
        examples = StreamedExamples(lambda: corpus.read("train"), to_examples, seed, buffer=9)
    else:
        examples = InMemoryExamples(list(to_examples(corpus.read("train"))), seed)
    return Batches(examples, collate=collate, tokens_per_batch=budget, seed=seed, window_size=20)


def epoch_indices(batches: Batches[Example, Batch], epoch: int) -> list[list[int]]:
    """Return the examples of each batch of an epoch; none where the copy does not count."""
    indices: list[list[int]] = []
    while batches.epoch <= epoch:
        batch = next(batches)
        if batches.epoch == epoch:
            indices.append(batch.indices.tolist() if batches.has_share else [])
    return indices


@given(
    ranks=st.integers(1, 7),
    kind=st.sampled_from(["plain", "gzip"]),
    streamed=st.booleans(),
    budget=st.integers(5, 90),
    seed=st.integers(0, 5),
)
def test_every_example_is_seen_once_an_epoch(
    files: dict[str, Path], ranks: int, kind: str, streamed: bool, budget: int, seed: int
):
    whole = epoch_indices(source_of(files[kind], streamed, budget, seed), epoch=1)
    parts: list[list[list[int]]] = []
    for rank in range(ranks):
        source = source_of(files[kind], streamed, budget, seed)
        source.take_share(rank, ranks)
        parts.append(epoch_indices(source, epoch=1))
    assert sorted(i for batches in parts for batch in batches for i in batch) == list(range(53))
    # The batches themselves do not depend on the number of processes.
    joined = [sorted(chain(*shares)) for shares in zip(*parts, strict=True)]
    assert joined == [sorted(batch) for batch in whole]


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 7))
def test_shares_are_balanced_by_size(sizes: list[int], count: int):
    shares = balanced_shares(sizes, count)
    assert sorted(position for share in shares for position in share) == list(range(len(sizes)))
    sums = [sum(sizes[position] for position in share) for share in shares]
    assert max(sums) - min(sums) <= max(sizes, default=0)


@given(st.integers(1, 20), st.integers(1, 7))
def test_rows_of_windows_are_shared(rows: int, ranks: int):
    ids = torch.arange(200)
    whole = next(RandomWindows(ids, rows=rows, context=4))
    parts: list[torch.Tensor] = []
    for rank in range(ranks):
        source = RandomWindows(ids, rows=rows, context=4)
        source.take_share(rank, ranks)
        window = next(source)
        assert len(window.inputs) >= 1
        if source.has_share:
            assert row_share(rows, rank, ranks).start == sum(map(len, parts))
            parts.append(window.inputs)
    assert torch.equal(torch.cat(parts), whole.inputs)


def test_windows_that_carry_states_cannot_be_shared():
    assert isinstance(RandomWindows(torch.arange(9), rows=1, context=2), SharedSource)
    assert not isinstance(ContiguousWindows(torch.arange(9), rows=1, context=2), SharedSource)
