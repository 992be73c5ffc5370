"""The data doctor for pictures with captions."""

from typing import Any

from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.captions import captions_of
from regard.corpora.corpus import Record
from regard.train.advice import on_captions
from regard.train.caption import CaptionRun
from regard.train.check_image import TEXT_ONLY, WHAT, Sizes, broken_at
from regard.train.check_text import odd
from regard.train.count import Shown, Side, count
from regard.train.run import prepare


def check_captions(settings: Settings, shown: Shown) -> dict[str, Any]:
    """How many pictures and captions, how large and long, and what comes again or is broken."""
    corpus = build_corpus(settings.data)
    run: CaptionRun = prepare(settings, corpus)
    reader, text, longest = run.task.pictures.reader, run.task.text, run.longest
    sizes = {split: Sizes() for split in corpus.splits}
    sides = {split: Side() for split in corpus.splits}
    long = dict.fromkeys(corpus.splits, 0)

    def seen(split: str, record: Record) -> Record:
        captions = captions_of(record)
        for ids in text.ids(list(captions)):
            sides[split].add(ids)
            long[split] += len(ids) > longest
        return {"source": sizes[split].add(record, reader) or "", "target": " ".join(captions)}

    counted = count(corpus, shown, seen)
    splits: dict[str, Any] = {}
    for split in corpus.splits:
        told, many = odd(corpus, split, counted[split], WHAT), sides[split].lengths.total()
        facts = {name: fact for name, fact in told.items() if name not in TEXT_ONLY}
        facts["places"] = broken_at(corpus, split, sizes[split])
        splits[split] = {
            "pictures": counted[split].pairs,
            "captions": many,
            **sizes[split].told(),
            **facts,
            "caption": sides[split].told(),
            "left_out": long[split] / max(many, 1),
            "reshaped": sizes[split].other / max(sizes[split].seen, 1),
        }
    each = settings.train.sentences_per_batch or 1
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": {"per_epoch": -(-splits["train"]["captions"] // each)},
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
            "size": text.size,
        },
    }
    return {**found, "warnings": list(on_captions(found, settings))}
