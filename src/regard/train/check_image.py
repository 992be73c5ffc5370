"""The data doctor for pictures."""

from collections import Counter
from typing import Any

from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.census import quantile
from regard.corpora.corpus import Corpus, Record, place
from regard.corpora.pictures import BadPictureError, Reader, digest_of, size_of
from regard.train.advice import on_pictures
from regard.train.check_text import odd
from regard.train.count import Shown, count
from regard.train.image import ImageRun
from regard.train.run import prepare

WHAT = "pictures"
TEXT_ONLY = ("empty_text", "replacement_characters", "control_characters", "not_nfc")


class Sizes:
    """Of the pictures of a split: their sides in pixels, and those that cannot be read."""

    def __init__(self) -> None:
        self.seen, self.broken = 0, list[tuple[int, str]]()
        self.short: Counter[int] = Counter()
        self.long: Counter[int] = Counter()
        self.labels: Counter[str] = Counter()
        self.other = 0  # of another shape than the model's

    def add(self, record: Record, reader: Reader) -> str | None:
        """Its digest; None if it cannot be read."""
        number, self.seen = self.seen, self.seen + 1
        self.labels[record.get("label", "")] += 1
        try:
            reader(record["picture"])
            sides = size_of(record["picture"])
        except BadPictureError as error:
            self.broken.append((number, str(error)))
            return None
        self.short[min(sides)] += 1
        self.long[max(sides)] += 1
        if reader.size is not None:
            height, width = reader.size
            self.other += sides[0] * width != sides[1] * height
        return digest_of(record["picture"])

    def told(self) -> dict[str, Any]:
        return {
            "broken": len(self.broken),
            "shortest_side": min(self.short, default=0),
            "usual_side": quantile(self.short, 0.5),
            "longest_side": max(self.long, default=0),
        }


def check_pictures(settings: Settings, shown: Shown) -> dict[str, Any]:
    """How many pictures of which label and size, which come again, and which cannot be read."""
    corpus = build_corpus(settings.data)
    run: ImageRun = prepare(settings, corpus)
    reader = run.task.pictures.reader
    sizes = {split: Sizes() for split in corpus.splits}

    def seen(split: str, record: Record) -> Record:
        return {"source": sizes[split].add(record, reader) or "", "target": record["label"]}

    counted = count(corpus, shown, seen)
    splits: dict[str, Any] = {}
    for split in corpus.splits:
        told = odd(corpus, split, counted[split], WHAT)
        facts = {name: fact for name, fact in told.items() if name not in TEXT_ONLY}
        facts |= {"several_labels": counted[split].duplicates.ambiguous}
        facts["places"] = broken_at(corpus, split, sizes[split])
        splits[split] = {
            "pictures": counted[split].pairs,
            **sizes[split].told(),
            **facts,
            "reshaped": sizes[split].other / max(sizes[split].seen, 1),
            "labels": dict(sizes[split].labels.most_common()),
        }
    each = settings.train.sentences_per_batch or 1
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": {"per_epoch": -(-splits["train"]["pictures"] // each)},
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
            "labels": run.task.labels.size,
        },
    }
    return {**found, "warnings": list(on_pictures(found, settings))}


def broken_at(corpus: Corpus, split: str, sizes: Sizes) -> dict[str, list[str]]:
    """Where the first one stands, and what is wrong with it."""
    if not sizes.broken:
        return {}
    number, why = sizes.broken[0]
    where = place(corpus, split, number)
    return {"broken": [why if why.startswith(where) else f"{where}: {why}"]}
