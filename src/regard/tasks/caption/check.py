"""Checks of the data of captioning."""

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Record
from regard.data.formats.captions import record_captions
from regard.files import JsonObject
from regard.tasks.building import UntrainedRun, build_untrained_run
from regard.tasks.doctor.counts import Progress, TokenStatistics, count_records
from regard.tasks.doctor.images import (
    TEXT_ONLY_KEYS,
    UNIT,
    ImageStatistics,
    broken_locations,
)
from regard.tasks.doctor.texts import text_anomalies
from regard.tasks.doctor.warnings import caption_warnings


def check_captions(settings: Settings, progress: Progress) -> JsonObject:
    """Count images and captions, their sizes and lengths, duplicates and broken files."""
    corpus = build_corpus(settings.data)
    run: UntrainedRun = build_untrained_run(settings, corpus)
    reader, tokenizer, max_tokens = run.task.images.reader, run.task.text, run.task.max_tokens
    sizes = {split: ImageStatistics() for split in corpus.splits}
    caption_statistics = {split: TokenStatistics() for split in corpus.splits}
    too_long_counts = dict.fromkeys(corpus.splits, 0)

    def to_pair(split: str, record: Record) -> Record:
        captions = record_captions(record)
        for ids in tokenizer.encode_ids(list(captions)):
            caption_statistics[split].add(ids)
            too_long_counts[split] += len(ids) > max_tokens
        return {"source": sizes[split].add(record, reader) or "", "target": " ".join(captions)}

    statistics_by_split = count_records(corpus, progress, to_pair)
    splits: JsonObject = {}
    for split in corpus.splits:
        anomalies, caption_count = (
            text_anomalies(corpus, split, statistics_by_split[split], UNIT),
            caption_statistics[split].lengths.total(),
        )
        image_anomalies = {
            name: value for name, value in anomalies.items() if name not in TEXT_ONLY_KEYS
        }
        image_anomalies["places"] = broken_locations(corpus, split, sizes[split])
        splits[split] = {
            "images": statistics_by_split[split].pairs,
            "captions": caption_count,
            **sizes[split].as_dict(),
            **image_anomalies,
            "caption": caption_statistics[split].as_dict(),
            "left_out": too_long_counts[split] / max(caption_count, 1),
            "reshaped": sizes[split].other_shapes / max(sizes[split].image_count, 1),
        }
    examples_per_batch = settings.train.examples_per_batch or 1
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": {"per_epoch": -(-splits["train"]["captions"] // examples_per_batch)},
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
            "size": tokenizer.size,
        },
    }
    return {**report, "warnings": list(caption_warnings(report, settings))}
