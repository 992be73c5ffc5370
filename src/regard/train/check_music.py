"""The data doctor for music: piano rolls, and tunes in ABC."""

from collections import Counter
from typing import Any

from regard.config.settings import Settings
from regard.corpora.abc import played
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Record, place
from regard.corpora.rolls import steps_of
from regard.train.advice import on_music
from regard.train.check_text import ANY, batched, check_documents, odd
from regard.train.check_text import Cut as Lengths
from regard.train.count import Shown, count
from regard.train.run import prepare

WHAT = "pieces"
TEXT_ONLY = ("empty_text", "replacement_characters", "control_characters", "not_nfc")


def check_music(settings: Settings, shown: Shown) -> dict[str, Any]:
    return (check_rolls if settings.run == "music" else check_tunes)(settings, shown)


def check_rolls(settings: Settings, shown: Shown) -> dict[str, Any]:
    """How many pieces, steps and notes, and how far they reach."""
    corpus = build_corpus(settings.data)
    counts: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    pitches: dict[str, set[int]] = {split: set() for split in corpus.splits}
    cut: dict[str, Lengths] = {split: Lengths() for split in corpus.splits}

    def seen(split: str, record: Record) -> Record:
        steps = steps_of(record["text"], split)
        counts[split].update(steps=len(steps), notes=sum(map(len, steps)))
        counts[split].update(silent=sum(not step for step in steps))
        pitches[split].update(pitch for step in steps for pitch in step)
        for start in range(0, len(steps), settings.train.longest):
            part = list(range(len(steps[start : start + settings.train.longest])))
            cut[split].add(part, part, None)
        return {"source": record["text"], "target": ANY}

    counted = count(corpus, shown, seen)
    run = prepare(settings, corpus)
    splits = {}
    for split in corpus.splits:
        told = odd(corpus, split, counted[split], WHAT)
        splits[split] = {
            "pieces": counted[split].pairs,
            **{name: counts[split][name] for name in ("steps", "notes", "silent")},
            "lowest": min(pitches[split], default=0),
            "highest": max(pitches[split], default=0),
            **{name: fact for name, fact in told.items() if name not in TEXT_ONLY},
        }
    parameters = sum(p.numel() for p in run.model.parameters())
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batched(settings, run, cut["train"]),
        "model": {"kind": settings.model.kind, "parameters": parameters},
    }
    return {**found, "warnings": list(on_music(found))}


def check_tunes(settings: Settings, shown: Shown) -> dict[str, Any]:
    """As any plain text; and which tunes cannot be played, and why."""
    found = check_documents(settings, shown)
    corpus = build_corpus(settings.data)
    for split, facts in found["splits"].items():
        faults = list[tuple[int, str]]()
        for number, record in enumerate(corpus.read(split)):
            try:
                played(record["text"])
            except ValueError as error:
                faults.append((number, str(error)))
        facts["unplayable"] = len(faults)
        if faults:
            number, why = faults[0]
            facts["places"]["unplayable"] = [f"{place(corpus, split, number)}: {why}"]
    return {**found, "warnings": [*found["warnings"], *on_music(found)]}
