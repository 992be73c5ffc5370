"""Processes that stream a file too large for memory see every example once an epoch."""

import gzip
from collections import Counter
from collections.abc import Generator
from functools import partial
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.batching import store
from regard.batching.batches import Batches, StreamedExamples
from regard.batching.example import Batch
from regard.data.corpus import Corpus
from regard.run import Run
from regard.tasks import base
from regard.tasks.load import resolve_settings
from regard.training.distributed.group import WorkerGroup
from regard.training.prepare import create_run, prepare_training

TEXT = "".join(f"{'a ' * (i % 7 + 1)}{i}\t{'b ' * (i % 5 + 1)}{i}\n" for i in range(53)).encode()
FILES = {"pairs.tsv": TEXT, "pairs.tsv.gz": gzip.compress(TEXT)}
EPOCHS = 2
Pair = tuple[tuple[int, ...], tuple[int, ...]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, tuple[Run, Corpus]]]:
    """Return a run and its data for each file, of which only a part is in memory at a time."""
    folder, runs = tmp_path_factory.mktemp("streamed"), dict[str, tuple[Run, Corpus]]()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
        table = {"kind": "files", "train": str(folder / name), "held_out": 0.0}
        values: dict[str, Any] = {"data": table, "text": {"kind": "words"}}
        values["model"] = {"kind": "rnnsearch", "dim": 2, "hidden_dim": 2}
        runs[name] = create_run(resolve_settings(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "MAX_CHARACTERS_IN_MEMORY", len(TEXT) // 4)
        patch.setattr(base, "Batches", partial(Batches, window_size=20))
        yield runs


def pairs_of(batch: Batch) -> list[Pair]:
    """Return the ids of the examples of a batch, ends included."""
    columns = (batch.source, batch.source_valid), (batch.target_out, batch.target_valid)
    sides = [
        [tuple(row[valid].tolist()) for row, valid in zip(ids, mask, strict=True)]
        for ids, mask in columns
    ]
    return list(zip(*sides, strict=True))


def epochs_of_rank(run: Run, corpus: Corpus, rank: int, ranks: int) -> list[list[list[Pair]]]:
    """Return the pairs that a process trains on, by epoch and batch."""
    training = prepare_training(run, corpus, WorkerGroup(rank, ranks))
    assert isinstance(training.batches.examples, StreamedExamples)
    epochs: list[list[list[Pair]]] = [[] for _ in range(EPOCHS)]
    while True:
        batch, counts = training.next_batch()
        if training.batches.epoch == EPOCHS:
            return epochs
        epochs[training.batches.epoch].append(pairs_of(batch) if counts else [])


@settings(max_examples=30)
@given(
    ranks=st.integers(1, 7),
    name=st.sampled_from(sorted(FILES)),
    budget=st.integers(5, 90),
    shuffle_buffer=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_every_example_is_seen_once_an_epoch(
    runs: dict[str, tuple[Run, Corpus]],
    ranks: int,
    name: str,
    budget: int,
    shuffle_buffer: int,
    seed: int,
):
    run, corpus = runs[name]
    train = run.settings.train.model_copy(
        update={"tokens_per_batch": budget, "shuffle_buffer": shuffle_buffer}
    )
    run.settings = run.settings.model_copy(update={"train": train, "seed": seed})
    expected = Counter(
        chain.from_iterable(
            pairs_of(run.task.collate([example]))
            for example in run.task.examples(corpus.read("train"))
        )
    )
    assert expected.total() == 53
    of_rank = partial(epochs_of_rank, run, corpus)
    whole, parts = of_rank(0, 1), [of_rank(rank, ranks) for rank in range(ranks)]
    for epoch in range(EPOCHS):
        shares = [part[epoch] for part in parts]
        assert Counter(chain.from_iterable(chain.from_iterable(shares))) == expected
        # The batches themselves do not depend on the number of processes.
        joined = [sorted(chain(*batch)) for batch in zip(*shares, strict=True)]
        assert joined == [sorted(batch) for batch in whole[epoch]]


@settings(max_examples=30)
@given(ranks=st.integers(1, 7), name=st.sampled_from(sorted(FILES)), steps=st.integers(1, 40))
def test_a_resumed_process_continues_its_stream(
    runs: dict[str, tuple[Run, Corpus]], ranks: int, name: str, steps: int
):
    run, corpus = runs[name]
    group = WorkerGroup(ranks - 1, ranks)
    first = prepare_training(run, corpus, group)
    for _ in range(steps):
        first.next_batch()
    second = prepare_training(run, corpus, group)
    second.batches.load_state_dict(first.batches.state_dict())
    for _ in range(5):
        (ours, has_share), (theirs, counts) = first.next_batch(), second.next_batch()
        assert (pairs_of(ours), has_share) == (pairs_of(theirs), counts)
