"""The data doctor for proteins with states, and for points with distances."""

from collections import Counter
from typing import Any

from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Record
from regard.corpora.points import distances_of
from regard.corpora.proteins import RESIDUES, UNTOLD
from regard.tasks.fold import windows
from regard.train.advice import on_folds
from regard.train.check_text import ANY, batched, odd
from regard.train.check_text import Cut as Lengths
from regard.train.count import Shown, count
from regard.train.run import prepare

TOLD = ("repeated_texts", "leaked_texts", "compared", "one_source_in", "places")


def check_fold(settings: Any, shown: Shown) -> dict[str, Any]:
    return (check_proteins if settings.run == "fold" else check_distances)(settings, shown)


def check_proteins(settings: Settings, shown: Shown) -> dict[str, Any]:
    """How many proteins and residues, how long, which states, and how many are there twice."""
    corpus = build_corpus(settings.data)
    counts: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    states: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    cut: dict[str, Lengths] = {split: Lengths() for split in corpus.splits}

    def seen(split: str, record: Record) -> Record:
        first, *others = record["text"].split()
        states[split].update(record["states"])
        counts[split].update(residues=len(first), aligned=len(others))
        counts[split].update(other_residues=sum(x not in RESIDUES for x in first))
        counts[split].update(in_windows=len(first) > settings.train.longest)
        for window in windows(len(first), settings.train.longest):
            cut[split].add([*window.read], [*window.read], None)
        return {"source": first, "target": record["states"]}

    counted = count(corpus, shown, seen)
    run = prepare(settings, corpus)
    splits = {}
    for split in corpus.splits:
        told, many = odd(corpus, split, counted[split], "texts"), counted[split].pairs
        untold = states[split].pop(UNTOLD, 0)
        splits[split] = {
            "texts": many,
            **{name: counts[split][name] for name in ("residues", "aligned", "other_residues")},
            "untold": untold,
            "windowed": counts[split]["in_windows"] / max(many, 1),
            **{name: fact for name, fact in told.items() if name in TOLD},
            "labels": dict(states[split].most_common()),
        }
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batched(settings, run, cut["train"]),
        "model": {**model_of(run), "labels": run.task.states.size},
    }
    return {**found, "warnings": list(on_folds(found, settings))}


def check_distances(settings: Any, shown: Shown) -> dict[str, Any]:
    """How many sets and distances, of how many points, and how many are out of reach."""
    corpus, head = build_corpus(settings.data), settings.head
    counts: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    sizes: dict[str, list[int]] = {split: [] for split in corpus.splits}
    cut: dict[str, Lengths] = {split: Lengths() for split in corpus.splits}

    def seen(split: str, record: Record) -> Record:
        _, table = distances_of(record["text"], split)
        known = [d for i, row in enumerate(table) for d in row[:i] if d is not None]
        counts[split].update(distances=len(known), far=sum(d > head.farthest for d in known))
        counts[split].update(near=sum(d < head.contact for d in known))
        sizes[split].append(len(table))
        if len(table) <= settings.train.longest:
            cut[split].add([*range(len(table))], [*range(len(table))], None)
        return {"source": record["text"], "target": ANY}

    counted = count(corpus, shown, seen)
    run = prepare(settings, corpus)
    splits = {}
    for split in corpus.splits:
        told, known = odd(corpus, split, counted[split], "texts"), counts[split]["distances"]
        splits[split] = {
            "texts": counted[split].pairs,
            "distances": known,
            "smallest": min(sizes[split], default=0),
            "largest": max(sizes[split], default=0),
            "left_out": 1 - len(cut[split].pairs) / max(len(sizes[split]), 1),
            "far": counts[split]["far"] / max(known, 1),
            "contacts": counts[split]["near"] / max(known, 1),
            **{name: fact for name, fact in told.items() if name in TOLD},
        }
    if not cut["train"].pairs:
        raise ValueError("train: no set is left; is the data empty, or train.longest small?")
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batched(settings, run, cut["train"]),
        "model": model_of(run),
    }
    return {**found, "warnings": list(on_folds(found, settings))}


def model_of(run: Any) -> dict[str, Any]:
    parameters = sum(p.numel() for p in run.model.parameters())
    return {"kind": run.settings.model.kind, "parameters": parameters}
