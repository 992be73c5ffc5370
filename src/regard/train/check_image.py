"""The data doctor for pictures."""

from collections import Counter
from typing import Any

from regard.config.settings import Settings
from regard.data.build import build_corpus as build_corpus
from regard.data.corpus import Corpus, Record, location
from regard.data.formats.images import BadImageError, ImageReader, image_digest, image_size
from regard.data.statistics import quantile
from regard.train.advice import picture_warnings
from regard.train.check_text import text_anomalies
from regard.train.count import Progress, count_records
from regard.train.image import ImageRun
from regard.train.run import build_run

UNIT = "pictures"
TEXT_ONLY_KEYS = ("empty_text", "replacement_characters", "control_characters", "not_nfc")


class PictureStatistics:
    """Of the pictures of a split: their sides in pixels, and those that cannot be read."""

    def __init__(self) -> None:
        self.picture_count, self.broken = 0, list[tuple[int, str]]()
        self.short_sides: Counter[int] = Counter()
        self.long_sides: Counter[int] = Counter()
        self.labels: Counter[str] = Counter()
        self.other_shapes = 0  # of another shape than the model's

    def add(self, record: Record, reader: ImageReader) -> str | None:
        """Its digest; None if it cannot be read."""
        index, self.picture_count = self.picture_count, self.picture_count + 1
        self.labels[record.get("label", "")] += 1
        try:
            reader(record["picture"])
            sides = image_size(record["picture"])
        except BadImageError as error:
            self.broken.append((index, str(error)))
            return None
        self.short_sides[min(sides)] += 1
        self.long_sides[max(sides)] += 1
        if reader.size is not None:
            height, width = reader.size
            self.other_shapes += sides[0] * width != sides[1] * height
        return image_digest(record["picture"])

    def as_dict(self) -> dict[str, Any]:
        return {
            "broken": len(self.broken),
            "shortest_side": min(self.short_sides, default=0),
            "usual_side": quantile(self.short_sides, 0.5),
            "longest_side": max(self.long_sides, default=0),
        }


def check_pictures(settings: Settings, progress: Progress) -> dict[str, Any]:
    """How many pictures of which label and size, which come again, and which cannot be read."""
    corpus = build_corpus(settings.data)
    run: ImageRun = build_run(settings, corpus)
    reader = run.task.pictures.reader
    sizes = {split: PictureStatistics() for split in corpus.splits}

    def to_pair(split: str, record: Record) -> Record:
        return {"source": sizes[split].add(record, reader) or "", "target": record["label"]}

    statistics_by_split = count_records(corpus, progress, to_pair)
    splits: dict[str, Any] = {}
    for split in corpus.splits:
        anomalies = text_anomalies(corpus, split, statistics_by_split[split], UNIT)
        picture_anomalies = {
            name: value for name, value in anomalies.items() if name not in TEXT_ONLY_KEYS
        }
        picture_anomalies |= {
            "several_labels": statistics_by_split[split].duplicates.ambiguous_count
        }
        picture_anomalies["places"] = broken_locations(corpus, split, sizes[split])
        splits[split] = {
            "pictures": statistics_by_split[split].pairs,
            **sizes[split].as_dict(),
            **picture_anomalies,
            "reshaped": sizes[split].other_shapes / max(sizes[split].picture_count, 1),
            "labels": dict(sizes[split].labels.most_common()),
        }
    examples_per_batch = settings.train.examples_per_batch or 1
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": {"per_epoch": -(-splits["train"]["pictures"] // examples_per_batch)},
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
            "labels": run.task.labels.size,
        },
    }
    return {**report, "warnings": list(picture_warnings(report, settings))}


def broken_locations(corpus: Corpus, split: str, sizes: PictureStatistics) -> dict[str, list[str]]:
    """Where the first one stands, and what is wrong with it."""
    if not sizes.broken:
        return {}
    index, reason = sizes.broken[0]
    record_location = location(corpus, split, index)
    return {
        "broken": [reason if reason.startswith(record_location) else f"{record_location}: {reason}"]
    }
