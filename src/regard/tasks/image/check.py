"""Checks of the data of image classification."""

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Record
from regard.files import JsonObject
from regard.tasks.building import UntrainedRun, build_untrained_run
from regard.tasks.doctor.counts import Progress, count_records
from regard.tasks.doctor.images import (
    TEXT_ONLY_KEYS,
    UNIT,
    ImageStatistics,
    broken_locations,
)
from regard.tasks.doctor.texts import text_anomalies
from regard.tasks.doctor.warnings import image_warnings


def check_image_data(settings: Settings, progress: Progress) -> JsonObject:
    """Count images by label and size, duplicates, and files that cannot be read."""
    corpus = build_corpus(settings.data)
    run: UntrainedRun = build_untrained_run(settings, corpus)
    reader = run.task.images.reader
    sizes = {split: ImageStatistics() for split in corpus.splits}

    def to_pair(split: str, record: Record) -> Record:
        return {"source": sizes[split].add(record, reader) or "", "target": record["label"]}

    statistics_by_split = count_records(corpus, progress, to_pair)
    splits: JsonObject = {}
    for split in corpus.splits:
        anomalies = text_anomalies(corpus, split, statistics_by_split[split], UNIT)
        image_anomalies = {
            name: value for name, value in anomalies.items() if name not in TEXT_ONLY_KEYS
        }
        image_anomalies |= {"several_labels": statistics_by_split[split].duplicates.ambiguous_count}
        image_anomalies["places"] = broken_locations(corpus, split, sizes[split])
        splits[split] = {
            "images": statistics_by_split[split].pairs,
            **sizes[split].as_dict(),
            **image_anomalies,
            "reshaped": sizes[split].other_shapes / max(sizes[split].image_count, 1),
            "labels": dict(sizes[split].labels.most_common()),
        }
    examples_per_batch = settings.train.examples_per_batch or 1
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": {"per_epoch": -(-splits["train"]["images"] // examples_per_batch)},
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
            "labels": run.task.labels.size,
        },
    }
    return {**report, "warnings": list(image_warnings(report, settings))}
