"""Checks of the data of music: piano rolls, and tunes in ABC notation."""

from collections import Counter

from regard.config.data.notes import is_roll_data
from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Record, location
from regard.data.formats.abc_notation import parse_tune
from regard.data.formats.piano_rolls import parse_piece
from regard.files import JsonObject
from regard.tasks.building import build_untrained_run
from regard.tasks.doctor.counts import Progress, count_records
from regard.tasks.doctor.texts import ANY_TARGET, batch_statistics, check_documents, text_anomalies
from regard.tasks.doctor.texts import TextStatistics as Lengths
from regard.tasks.doctor.warnings import music_warnings

UNIT = "pieces"
TEXT_ONLY_KEYS = ("empty_text", "replacement_characters", "control_characters", "not_nfc")


def check_music(settings: Settings, progress: Progress) -> JsonObject:
    """Check piano rolls or tunes, as the data is."""
    return (check_rolls if is_roll_data(settings.data) else check_tunes)(settings, progress)


def check_rolls(settings: Settings, progress: Progress) -> JsonObject:
    """Count pieces, steps and notes; return the lowest and highest pitch."""
    corpus = build_corpus(settings.data)
    counts: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}
    pitches: dict[str, set[int]] = {split: set() for split in corpus.splits}
    lengths_by_split: dict[str, Lengths] = {split: Lengths() for split in corpus.splits}

    def to_pair(split: str, record: Record) -> Record:
        steps = parse_piece(record["text"], split)
        counts[split].update(steps=len(steps), notes=sum(map(len, steps)))
        counts[split].update(silent=sum(not step for step in steps))
        pitches[split].update(pitch for step in steps for pitch in step)
        for start in range(0, len(steps), settings.train.max_tokens):
            window = list(range(len(steps[start : start + settings.train.max_tokens])))
            lengths_by_split[split].add(window, window)
        return {"source": record["text"], "target": ANY_TARGET}

    statistics_by_split = count_records(corpus, progress, to_pair)
    run = build_untrained_run(settings, corpus)
    splits = {}
    for split in corpus.splits:
        anomalies = text_anomalies(corpus, split, statistics_by_split[split], UNIT)
        splits[split] = {
            "pieces": statistics_by_split[split].pairs,
            **{name: counts[split][name] for name in ("steps", "notes", "silent")},
            "lowest": min(pitches[split], default=0),
            "highest": max(pitches[split], default=0),
            **{name: value for name, value in anomalies.items() if name not in TEXT_ONLY_KEYS},
        }
    parameters = sum(p.numel() for p in run.model.parameters())
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "batches": batch_statistics(settings, run, lengths_by_split["train"]),
        "model": {"kind": settings.model.kind, "parameters": parameters},
    }
    return {**report, "warnings": list(music_warnings(report))}


def check_tunes(settings: Settings, progress: Progress) -> JsonObject:
    """Check tunes as plain text; count those that cannot be played, and say why."""
    report = check_documents(settings, progress)
    corpus = build_corpus(settings.data)
    for split, statistics in report["splits"].items():
        faults = list[tuple[int, str]]()
        for index, record in enumerate(corpus.read(split)):
            try:
                parse_tune(record["text"])
            except ValueError as error:
                faults.append((index, str(error)))
        statistics["unplayable"] = len(faults)
        if faults:
            index, reason = faults[0]
            statistics["places"]["unplayable"] = [f"{location(corpus, split, index)}: {reason}"]
    return {**report, "warnings": [*report["warnings"], *music_warnings(report)]}
