"""Checks of sequences of bits: they are synthetic, so that only their sizes can be wrong."""

from collections import Counter

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.tasks.building import build_untrained_run
from regard.tasks.doctor.counts import Progress, count_records
from regard.tasks.doctor.texts import TextStatistics as Lengths
from regard.tasks.doctor.texts import batch_statistics, text_anomalies
from regard.tasks.doctor.warnings import bit_sequence_warnings

REPORTED_KEYS = ("repeated_sequences", "leaked_sequences", "one_source_in")


def check_bits(settings: Settings, progress: Progress) -> JsonObject:
    """Count sequences by size, duplicates, and the sequences of a batch."""
    corpus = build_corpus(settings.data)
    run = build_untrained_run(settings, corpus)
    sizes: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    size_ranges: dict[str, list[int]] = {split: [] for split in corpus.splits}
    train_lengths, left_out = Lengths(), 0

    def to_pair(split: str, record: Record) -> Record:
        nonlocal left_out
        example = run.task.build_example(record["source"], split)
        sizes[split].update(vectors=len(example.target))
        vector_count = sum(symbol < 2**run.task.sequence_format.width for symbol in example.source)
        smallest, largest, max_vectors = size_ranges[split] or (record["size"], 0, 0)
        size_ranges[split] = [
            min(smallest, record["size"]),
            max(largest, record["size"]),
            max(max_vectors, vector_count),
        ]
        if split == "train":
            if len(example.source) + len(example.target) <= run.task.max_tokens:
                train_lengths.add(example.source, example.source)
            else:
                left_out += 1
        return {"source": record["source"], "target": record["target"]}

    statistics_by_split = count_records(corpus, progress, to_pair)
    splits = {}
    for split in corpus.splits:
        anomalies = text_anomalies(corpus, split, statistics_by_split[split], "sequences")
        splits[split] = {
            "sequences": statistics_by_split[split].pairs,
            "vectors": sizes[split]["vectors"],
            **dict(zip(("smallest", "largest", "shown"), size_ranges[split], strict=True)),
            **{name: value for name, value in anomalies.items() if name in REPORTED_KEYS},
        }
    if not train_lengths.examples:
        raise InputError("train: no example is left; is the data empty, or train.max_tokens small?")
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batch_statistics(settings, run, train_lengths),
        "left_out": left_out / statistics_by_split["train"].pairs,
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
        },
    }
    return {**report, "warnings": list(bit_sequence_warnings(report, settings))}
