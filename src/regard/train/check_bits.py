"""The data doctor for sequences of bits: made here, so that only their sizes can be wrong."""

from collections import Counter
from typing import Any

from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Record
from regard.train.advice import on_bits
from regard.train.check_text import Cut as Lengths
from regard.train.check_text import batched, odd
from regard.train.count import Shown, count
from regard.train.run import prepare

TOLD = ("repeated_sequences", "leaked_sequences", "one_source_in")


def check_bits(settings: Settings, shown: Shown) -> dict[str, Any]:
    """How many sequences of which sizes, how many were there before, and what a batch is."""
    corpus = build_corpus(settings.data)
    run = prepare(settings, corpus)
    sizes: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    most: dict[str, list[int]] = {split: [] for split in corpus.splits}
    cut, left_out = Lengths(), 0

    def seen(split: str, record: Record) -> Record:
        nonlocal left_out
        pair = run.task.pair(record["source"], split)
        sizes[split].update(vectors=len(pair.target))
        held = sum(number < 2**run.task.form.width for number in pair.source)
        least, largest, room = most[split] or (record["size"], 0, 0)
        most[split] = [min(least, record["size"]), max(largest, record["size"]), max(room, held)]
        if split == "train":
            if len(pair.source) + len(pair.target) <= run.longest:
                cut.add(pair.source, pair.source, None)
            else:
                left_out += 1
        return {"source": record["source"], "target": record["target"]}

    counted = count(corpus, shown, seen)
    splits = {}
    for split in corpus.splits:
        told = odd(corpus, split, counted[split], "sequences")
        splits[split] = {
            "sequences": counted[split].pairs,
            "vectors": sizes[split]["vectors"],
            **dict(zip(("smallest", "largest", "shown"), most[split], strict=True)),
            **{name: fact for name, fact in told.items() if name in TOLD},
        }
    if not cut.pairs:
        raise ValueError("train: no pair is left; is the data empty, or train.longest small?")
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batched(settings, run, cut),
        "left_out": left_out / counted["train"].pairs,
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
        },
    }
    return {**found, "warnings": list(on_bits(found, settings))}
