"""Checks of parallel texts before training.

Two passes over the data, each in bounded memory. The first counts texts, by their hashes; the
second counts tokens. Of many pairs it reads only every second, third, …
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from regard.batching.batches import Batches, InMemoryExamples
from regard.batching.example import ExampleSize
from regard.batching.memory_forecast import BatchShape
from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Corpus, Record, location
from regard.data.statistics import SplitStatistics, has_unusual_ratio
from regard.errors import InputError
from regard.files import JsonObject
from regard.tasks.building import UntrainedRun, build_untrained_run
from regard.tasks.doctor.counts import (
    MemoryProbe,
    Progress,
    TokenStatistics,
    count_records,
    sampled_chunks,
    sampling_stride,
)
from regard.tasks.doctor.warnings import parallel_data_warnings
from regard.tasks.seq2seq import SIDES

MAX_NAMED_LOCATIONS = 3  # places that are named


@dataclass
class PairStatistics:
    """A split cut into tokens: `pairs` are those that would be trained on, as lengths only."""

    stride: int = 1  # one pair in so many was cut
    pair_count: int = 0
    left_out: int = 0
    length_outliers: int = 0  # of all pairs, measured in characters
    outlier_indices: list[int] = field(default_factory=list)
    source: TokenStatistics = field(default_factory=TokenStatistics)
    target: TokenStatistics = field(default_factory=TokenStatistics)
    examples: list[ExampleSize] = field(default_factory=list)

    def add(
        self, source: list[int], target: list[int], max_tokens: tuple[int, int], truncate: bool
    ) -> None:
        """`max_tokens` of each side; what is longer is left out, or cut with `truncate`."""
        self.pair_count += 1
        self.source.add(source)
        self.target.add(target)
        if len(source) > max_tokens[0] or len(target) > max_tokens[1]:
            self.left_out += 1
            if not truncate:
                return
        lengths = min(len(source), max_tokens[0]), min(len(target), max_tokens[1])
        self.examples.append(ExampleSize(self.pair_count, lengths))


def check_pairs(
    settings: Settings,
    progress: Progress,
    memory_probe: MemoryProbe,
    max_target_tokens: Callable[[Any], int] | None = None,
) -> JsonObject:
    """Pairs of texts, and the memory that training on them takes."""
    corpus = build_corpus(settings.data)
    statistics_by_split = count_records(corpus, progress)
    run = build_untrained_run(settings, corpus)
    median_ratio_bin = statistics_by_split["train"].median_ratio_bin()
    tokens_by_split = {
        split: pair_statistics(
            corpus,
            split,
            statistics_by_split[split].pairs,
            median_ratio_bin,
            run,
            progress,
            max_target_tokens,
        )
        for split in corpus.splits
    }
    if not tokens_by_split["train"].examples:
        raise InputError("train: no example is left; is the data empty, or train.max_tokens small?")
    batches, largest_shape = batch_statistics(settings, tokens_by_split["train"])
    sizes = {f"{side}_size": getattr(run.task, side).size for side in SIDES}
    memory = memory_probe(settings, sizes, largest_shape)
    report = {
        "data": corpus.describe(),
        "splits": {
            s: split_report(
                corpus, s, statistics_by_split[s], tokens_by_split[s], max_target_tokens
            )
            for s in corpus.splits
        },
        "batches": batches,
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
            **sizes,
        },
        "memory": {**memory._asdict(), "shape": largest_shape._asdict(), "peak": memory.peak},
    }
    return {**report, "warnings": list(parallel_data_warnings(report, settings))}


def pair_statistics(
    corpus: Corpus,
    split: str,
    total: int,
    median_ratio_bin: int,
    run: UntrainedRun,
    progress: Progress,
    max_target_tokens: Callable[[Any], int] | None,
) -> PairStatistics:
    """Run the second pass; outliers are measured in characters, so that no pair is left out."""
    statistics, task = PairStatistics(stride=sampling_stride(total)), run.task
    is_cut = max_target_tokens is not None  # a longer side is cut, not left out
    max_tokens = (task.max_tokens, max_target_tokens(task) if is_cut else task.max_tokens)

    def count_outliers() -> Iterator[Record]:
        for index, record in enumerate(progress(f"cutting {split}", total, corpus.read(split))):
            if not is_cut and has_unusual_ratio(
                record["source"], record["target"], median_ratio_bin
            ):
                statistics.length_outliers += 1
                if len(statistics.outlier_indices) < MAX_NAMED_LOCATIONS:
                    statistics.outlier_indices.append(index)
            yield record

    for chunk in sampled_chunks(count_outliers(), statistics.stride):
        sides = (getattr(task, side).encode_ids([r[side] for r in chunk]) for side in SIDES)
        for source, target in zip(*sides, strict=True):
            statistics.add(source, target, max_tokens, is_cut)
    return statistics


def batch_statistics(
    settings: Settings, statistics: PairStatistics
) -> tuple[JsonObject, BatchShape]:
    """An epoch as training would cut it: how many batches, how much padding, the largest."""
    train = settings.train
    batches = Batches(
        InMemoryExamples(statistics.examples, settings.seed),
        collate=list,
        tokens_per_batch=train.tokens_per_batch,
        examples_per_batch=train.examples_per_batch,
        seed=settings.seed,
    )
    shapes, token_count = list[BatchShape](), 0
    for group in batches.epoch_batches():
        sides = list(zip(*(example.lengths for example in group), strict=True))
        token_count += sum(map(sum, sides)) + 2 * len(group)
        shapes.append(BatchShape(len(group), *(max(side) for side in sides)))
    padded_tokens = sum(shape.rows * (shape.source + shape.target + 2) for shape in shapes)
    # Attention is of rows x source x target; all else of rows x (source + target).
    largest = max(shapes, key=lambda s: s.rows * (s.source + 1) * (s.target + 1))
    return {
        "per_epoch": len(shapes) * statistics.stride,
        "padding": 1 - token_count / padded_tokens,
    }, largest


def split_report(
    corpus: Corpus,
    split: str,
    split_statistics: SplitStatistics,
    pair_statistics: PairStatistics,
    max_target_tokens: Callable[[Any], int] | None,
) -> JsonObject:
    """One split, as plain data."""
    duplicates, hashes = split_statistics.duplicates, split_statistics.hashes
    report: JsonObject = {
        "pairs": split_statistics.pairs,
        "empty_source": split_statistics.empty_source,
        "empty_target": split_statistics.empty_target,
        "identical": split_statistics.identical,
        "duplicates": duplicates.repeated_count,
        "ambiguous_sources": duplicates.ambiguous_count,
        "one_source_in": duplicates.sampling_stride,
        "replacement_characters": split_statistics.replacement_characters,
        "control_characters": split_statistics.control_characters,
        "not_nfc": split_statistics.not_nfc,
        "one_pair_in": pair_statistics.stride,
        "source": pair_statistics.source.as_dict(),
        "target": pair_statistics.target.as_dict(),
    }
    too_long_share = pair_statistics.left_out / max(pair_statistics.pair_count, 1)
    if max_target_tokens is not None:
        report |= {"shortened": too_long_share}
    else:
        report |= {"left_out": too_long_share, "ratio_outliers": pair_statistics.length_outliers}
    if split != "train":
        report |= {
            "compared": hashes.pair_count,
            "leaked_pairs": hashes.leaked_pairs,
            "leaked_sources": hashes.leaked_sources,
        }
    indices_by_anomaly = {name: [index] for name, index in split_statistics.first_indices.items()}
    if pair_statistics.outlier_indices:
        indices_by_anomaly["ratio_outliers"] = pair_statistics.outlier_indices
    locations = {
        name: [location(corpus, split, n) for n in indices]
        for name, indices in indices_by_anomaly.items()
    }
    return {**report, "places": locations}
