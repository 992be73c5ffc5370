"""One run of a comparison: how good, how quick, and whether it looked where it should."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from regard.config.settings import Settings
from regard.config.train import TrainConfig
from regard.data.corpus import Record
from regard.data.database import Database
from regard.data.formats.text_pairs import read_pairs as read_pairs
from regard.metrics.alignment import agreement
from regard.metrics.alignment_files import GoldAlignment, parse_links, read_gold
from regard.metrics.comparison import ModelResult, Number, length_bin_edges
from regard.metrics.translation import bleu, score_by_length
from regard.tasks.align import Aligner
from regard.tasks.translate import TranslateTask
from regard.text.labels import Labels
from regard.text.train import train_tokenizer
from regard.train.run import ProgressCallback, Run, find_run_class
from regard.train.translate import TranslateRun
from regard.training.log import LogEntry, entry_step, read_log


class GoldAlignments(NamedTuple):
    """Pairs whose word alignment is known."""

    records: Sequence[Record]
    gold: Sequence[GoldAlignment]


def check_models(models: Mapping[str, Settings]) -> None:
    """Fail before the first is trained, not when the last one's turn has come."""
    tokenizer, labels = train_tokenizer("wordpiece", ["ab"], 8), Labels(["a", "b"])
    other_vocabularies = {
        "labels": labels,
        "tags": labels,
        "states": labels,
        "database": Database([], []),
    }
    for name, settings in models.items():
        run_class = find_run_class(settings.run_kind)
        placeholder_vocabularies = {
            vocabulary_name: other_vocabularies.get(vocabulary_name, tokenizer)
            for vocabulary_name in run_class.vocabulary_loaders
        }
        try:
            with torch.device("meta"):  # shapes without memory
                run_class(
                    run_class.resolve_settings(settings), placeholder_vocabularies
                ).parameter_groups()
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def check_training_lengths(models: Mapping[str, Settings], runs: Path) -> None:
    """A run that went on for longer cannot stand for what its config says: it is no more there."""
    for name, settings in models.items():
        log = read_log(runs / name)
        expected_end = final_step(settings.train, log)
        if expected_end is not None and entry_step(log[-1]) > expected_end:
            problem = (
                f"was trained for {entry_step(log[-1])} steps, but would have ended after "
                f"{expected_end}"
            )
            raise ValueError(f"{runs / name}: {problem}; train as long, or choose other --runs")


def final_step(train: TrainConfig, log: Sequence[LogEntry]) -> int | None:
    """The step after which these settings end a training, if the log goes that far."""
    validations_without_gain = 0
    for entry in log:
        if entry["kind"] == "dev":
            validations_without_gain = 0 if entry["best"] else validations_without_gain + 1
            is_over = train.patience is not None and validations_without_gain >= train.patience
        elif train.steps is not None:
            is_over = entry["number"] >= train.steps
        else:
            is_over = train.epochs is not None and entry.get("epoch", 0) >= train.epochs
        if is_over:
            return entry_step(entry)
    return None


def measure_run(
    name: str,
    run: Run,
    log: Sequence[LogEntry],
    records: Sequence[Record],
    on_progress: ProgressCallback | None = None,
) -> ModelResult:
    """A run with its log, by the metrics of its task on these records."""
    metrics = run.score(records, on_progress)
    numeric_metrics = {
        metric: value for metric, value in metrics.items() if isinstance(value, float)
    }
    speed, seconds = training_speed(log)
    values: dict[str, Number | None] = {
        "parameters": parameter_count(run),
        **numeric_metrics,
        f"training_{run.unit}": speed,
        "training_seconds": seconds,
    }
    return ModelResult(name, values, {})


def measure_translation_run(
    name: str,
    run: TranslateRun,
    log: Sequence[LogEntry],
    records: Sequence[Record],
    *,
    longer: Sequence[Record] = (),
    truth: GoldAlignments | None = None,
    on_progress: ProgressCallback | None = None,
    tokenize: str = "13a",
) -> tuple[ModelResult, str]:
    """The same with AER, BLEU by length and the speed of the search; the signature of its BLEU.

    BLEU by length is that of the records, or of `longer` ones if they are given.
    """
    start_time = time.perf_counter()
    outputs = translated_texts(run, records, on_progress)
    seconds = time.perf_counter() - start_time
    metrics = run.metrics(records, outputs, tokenize)
    length_records = longer or records
    sources, references = (
        [record[side] for record in length_records] for side in ("source", "target")
    )
    bins = score_by_length(
        sources,
        translated_texts(run, length_records, on_progress) if longer else outputs,
        references,
        score=partial(bleu, tokenize=tokenize, force=tokenize == "none"),
        edges=length_bin_edges(sources),
    )
    speed, training_seconds = training_speed(log)
    values: dict[str, Number | None] = {
        "parameters": parameter_count(run),
        **{metric: float(metrics[metric]) for metric in ("bleu", "chrf", "exact", "perplexity")},
        "aer": alignment_error(run.task, truth),
        "training_tokens": speed,
        "decoding_sentences": len(records) / seconds,
        "training_seconds": training_seconds,
    }
    measurement = ModelResult(name, values, {bucket.name: bucket.score.value for bucket in bins})
    return measurement, str(metrics["bleu_signature"])


def parameter_count(run: Run) -> int:
    return sum(weight.numel() for weight in run.model.parameters())


def training_speed(log: Sequence[LogEntry]) -> tuple[float, float]:
    """What was counted in a second of training, and the seconds of all steps without validation."""
    steps = [entry for entry in log if entry["kind"] == "step"]
    seconds = float(sum(entry["seconds"] for entry in steps))
    return sum(entry["tokens"] for entry in steps) / seconds if seconds else 0.0, seconds


def translated_texts(
    run: TranslateRun, records: Sequence[Record], on_progress: ProgressCallback | None = None
) -> list[str]:
    return [
        best[0].text
        for best in run.predict([r["source"] for r in records], on_progress=on_progress)
    ]


def alignment_error(task: TranslateTask, truth: GoldAlignments | None) -> float | None:
    """AER of the source word that each target word looked at most; None where there is none."""
    if truth is None or not task.model.cross_attentions:
        return None
    aligner = Aligner(task)
    texts = [(record["source"], record["target"]) for record in truth.records]
    return agreement(aligner.links(texts, [aligner.default_selection()])[0], truth.gold).aer


def alignments_from_records(records: Sequence[Record]) -> GoldAlignments | None:
    """The truth that the records carry themselves, as those of `reorder` do."""
    if not all("links" in record for record in records):
        return None
    link_sets = [
        parse_links(entry["links"], f"record {number}") for number, entry in enumerate(records, 1)
    ]
    return GoldAlignments(records, [GoldAlignment(links, links) for links in link_sets])


def alignments_from_files(gold: Path, pairs: Path, base: int = 0) -> GoldAlignments:
    """The truth of a gold file, and its pairs in any format that `regard align` reads."""
    records = list(read_pairs([pairs]))
    sizes = [(len(record["source"].split()), len(record["target"].split())) for record in records]
    return GoldAlignments(records, read_gold(gold, base, sizes=sizes))
