"""Checks of the data of proteins: states of residues, and distances of points."""

from collections import Counter

from regard.data.build import build_corpus
from regard.data.corpus import Record
from regard.data.formats.proteins import RESIDUES
from regard.data.synthetic.points import parse_distances
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.fold import UNKNOWN_STATE
from regard.tasks.building import UntrainedRun, build_untrained_run
from regard.tasks.doctor.counts import Progress, count_records
from regard.tasks.doctor.texts import ANY_TARGET, batch_statistics, text_anomalies
from regard.tasks.doctor.texts import TextStatistics as Lengths
from regard.tasks.doctor.warnings import fold_warnings
from regard.tasks.fold.settings import FoldSettings
from regard.tasks.fold.states import residue_windows

REPORTED_KEYS = ("repeated_texts", "leaked_texts", "compared", "one_source_in", "places")


def check_proteins(settings: FoldSettings, progress: Progress) -> JsonObject:
    """Count proteins, residues and states, proteins in windows, and duplicates."""
    corpus = build_corpus(settings.data)
    counts: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    states: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    lengths_by_split: dict[str, Lengths] = {split: Lengths() for split in corpus.splits}

    def to_pair(split: str, record: Record) -> Record:
        sequence, *aligned = record["text"].split()
        states[split].update(record["states"])
        counts[split].update(residues=len(sequence), aligned=len(aligned))
        counts[split].update(other_residues=sum(x not in RESIDUES for x in sequence))
        counts[split].update(in_windows=len(sequence) > settings.train.max_tokens)
        for window in residue_windows(len(sequence), settings.train.max_tokens):
            lengths_by_split[split].add([*window.context], [*window.context])
        return {"source": sequence, "target": record["states"]}

    statistics_by_split = count_records(corpus, progress, to_pair)
    run = build_untrained_run(settings, corpus)
    splits = {}
    for split in corpus.splits:
        anomalies, protein_count = (
            text_anomalies(corpus, split, statistics_by_split[split], "texts"),
            statistics_by_split[split].pairs,
        )
        unknown_states = states[split].pop(UNKNOWN_STATE, 0)
        splits[split] = {
            "texts": protein_count,
            **{name: counts[split][name] for name in ("residues", "aligned", "other_residues")},
            "unknown_states": unknown_states,
            "windowed": counts[split]["in_windows"] / max(protein_count, 1),
            **{name: value for name, value in anomalies.items() if name in REPORTED_KEYS},
            "labels": dict(states[split].most_common()),
        }
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batch_statistics(settings, run, lengths_by_split["train"]),
        "model": {**model_summary(run), "labels": run.task.states.size},
    }
    return {**report, "warnings": list(fold_warnings(report, settings))}


def check_distances(settings: FoldSettings, progress: Progress) -> JsonObject:
    """Count sets, points and distances, sets that are too large, and distances beyond the bins."""
    corpus, head = build_corpus(settings.data), settings.head
    counts: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    sizes: dict[str, list[int]] = {split: [] for split in corpus.splits}
    lengths_by_split: dict[str, Lengths] = {split: Lengths() for split in corpus.splits}

    def to_pair(split: str, record: Record) -> Record:
        _, table = parse_distances(record["text"], split)
        distances = [d for i, row in enumerate(table) for d in row[:i] if d is not None]
        counts[split].update(
            distances=len(distances), far=sum(d > head.max_distance for d in distances)
        )
        counts[split].update(near=sum(d < head.contact_distance for d in distances))
        sizes[split].append(len(table))
        if len(table) <= settings.train.max_tokens:
            lengths_by_split[split].add([*range(len(table))], [*range(len(table))])
        return {"source": record["text"], "target": ANY_TARGET}

    statistics_by_split = count_records(corpus, progress, to_pair)
    run = build_untrained_run(settings, corpus)
    splits = {}
    for split in corpus.splits:
        anomalies, distance_count = (
            text_anomalies(corpus, split, statistics_by_split[split], "texts"),
            counts[split]["distances"],
        )
        splits[split] = {
            "texts": statistics_by_split[split].pairs,
            "distances": distance_count,
            "smallest": min(sizes[split], default=0),
            "largest": max(sizes[split], default=0),
            "left_out": 1 - len(lengths_by_split[split].examples) / max(len(sizes[split]), 1),
            "far": counts[split]["far"] / max(distance_count, 1),
            "contacts": counts[split]["near"] / max(distance_count, 1),
            **{name: value for name, value in anomalies.items() if name in REPORTED_KEYS},
        }
    if not lengths_by_split["train"].examples:
        raise InputError("train: no set is left; is the data empty, or train.max_tokens small?")
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batch_statistics(settings, run, lengths_by_split["train"]),
        "model": model_summary(run),
    }
    return {**report, "warnings": list(fold_warnings(report, settings))}


def model_summary(run: UntrainedRun) -> JsonObject:
    """Return the kind of the model and the number of its parameters."""
    parameters = sum(p.numel() for p in run.model.parameters())
    return {"kind": run.settings.model.kind, "parameters": parameters}
