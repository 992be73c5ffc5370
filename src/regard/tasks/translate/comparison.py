"""Measurements of `regard compare` on translators: BLEU by length, alignment errors, speed."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from regard.config.settings import Settings
from regard.data.corpus import Record
from regard.errors import InputError
from regard.metrics.comparison import concatenated_records, length_bin_edges
from regard.metrics.translation import bleu, score_by_length
from regard.tasks.alignment import (
    GoldAlignments,
    alignment_error,
    gold_from_files,
    gold_from_records,
)
from regard.tasks.base import AnyTask, ProgressCallback
from regard.tasks.comparison import Comparison, ComparisonOptions, Measurement
from regard.tasks.translate.task import TranslateTask
from regard.view import chart


class TranslateComparison(Comparison):
    """Compares translators."""

    supported_options: ClassVar = ComparisonOptions._fields

    def __init__(
        self,
        models: Mapping[str, Settings],
        records: Sequence[Record],
        options: ComparisonOptions,
    ):
        super().__init__(models, records, options)
        self.gold = gold_alignments(records, options)
        self.longer = concatenated_records(records, options.join) if options.join > 1 else ()
        self.total += len(self.longer)

    def comparison_notes(self, models: Mapping[str, Settings]) -> list[str]:
        notes = ["AER: links by the greatest weight, with the reference as input"]
        if (count := self.options.join) > 1:
            notes.append(f"BLEU by length: sentences of 1 to {count} consecutive pairs, joined")
        return notes + super().comparison_notes(models)

    def measure(self, task: AnyTask, on_progress: ProgressCallback) -> Measurement:
        start = time.perf_counter()
        predictions = task.predict(self.records, on_progress=on_progress)
        seconds = time.perf_counter() - start
        metrics = {
            **task.metrics(self.records, predictions),
            **task.likelihood_metrics(self.records),
        }
        if (note := f"BLEU: {metrics['bleu_signature']}") not in self.notes:
            self.notes.insert(0, note)
        records = self.longer or self.records
        if self.longer:
            predictions = task.predict(records, on_progress=on_progress)
        sources = [record["source"] for record in records]
        tokenize = getattr(task, "bleu_tokenizer", "13a")
        bins = score_by_length(
            sources,
            [prediction.text for prediction in predictions],
            [record["target"] for record in records],
            score=partial(bleu, tokenize=tokenize, force=tokenize == "none"),
            edges=length_bin_edges(sources),
        )
        values: dict[str, float | None] = {
            name: float(metrics[name]) for name in ("bleu", "chrf", "exact", "perplexity")
        }
        values |= {"aer": alignment_error(task.aligner(), self.gold)}
        values |= {"decoding_sentences": len(self.records) / seconds}
        return Measurement(values, {bucket.name: bucket.score.value for bucket in bins})

    def attention_png(self, name: str, task: AnyTask) -> bytes | None:
        if not isinstance(task, TranslateTask) or not task.has_attention():
            return None
        text = self.records[0]["source"]
        best = task.decode([text])[0].best
        alignment = task.alignment(text, best.ids)
        if max(alignment.weights.shape) > chart.MAX_CELLS:
            return None
        title = f"{name}: {best.text}"
        weights = alignment.weights.tolist()
        return chart.heatmap_png(weights, alignment.target, alignment.source, title)


def gold_alignments(records: Sequence[Record], options: ComparisonOptions) -> GoldAlignments | None:
    """Return the gold links of the options, or those that the records carry."""
    if (options.gold is None) != (options.pairs is None):
        raise InputError("--gold and --pairs belong together: give both")
    if options.gold is None or options.pairs is None:
        return gold_from_records(records)
    return gold_from_files(options.gold, options.pairs, options.gold_base)
