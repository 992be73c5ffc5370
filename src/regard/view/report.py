"""A comparison of models as text, Markdown, CSV and JSON."""

import csv
import json
import math
from collections.abc import Collection, Sequence
from io import StringIO
from typing import NamedTuple

from regard.files import JsonObject
from regard.metrics.comparison import ModelResult, SeedSpread
from regard.view.cell_width import cell_len
from regard.view.sanitize import csv_cell

# Titles and formats of columns, in this order
COLUMNS = {
    "parameters": ("parameters", "{:,}"),
    "bleu": ("BLEU", "{:.2f}"),
    "chrf": ("chrF", "{:.2f}"),
    "exact": ("exact %", "{:.1f}"),
    "accuracy": ("accuracy %", "{:.2f}"),
    "f1": ("F1 %", "{:.2f}"),
    "slot_f1": ("slot F1 %", "{:.2f}"),
    "intent_accuracy": ("intent %", "{:.2f}"),
    "sentence_accuracy": ("sentence %", "{:.2f}"),
    "perplexity": ("perplexity", "{:.2f}"),
    "loss": ("loss", "{:.4f}"),
    "bits_per_character": ("bits/character", "{:.3f}"),
    "next_sentence": ("next sentence %", "{:.2f}"),
    "aer": ("AER", "{:.3f}"),
    "training_tokens": ("train tokens/s", "{:,.0f}"),
    "training_texts": ("train texts/s", "{:,.0f}"),
    "training_pairs": ("train pairs/s", "{:,.0f}"),
    "training_words": ("train words/s", "{:,.0f}"),
    "decoding_sentences": ("decode sent/s", "{:,.1f}"),
    "training_seconds": ("train s", "{:,.0f}"),
}
TableCells = list[list[str]]


class ComparisonReport(NamedTuple):
    """The contents of a report, without its plots."""

    title: str
    models: Sequence[ModelResult]
    spreads: Sequence[SeedSpread]
    notes: Sequence[str]


def metric_names(models: Sequence[ModelResult]) -> list[str]:
    """Return the metrics of models in the order of COLUMNS; others come before the speeds."""
    order = {name: number for number, name in enumerate(COLUMNS)}
    names = dict.fromkeys(name for model in models for name in model.values)
    return sorted(names, key=lambda name: order.get(name, order["aer"]))


def column_format(name: str) -> tuple[str, str]:
    """Return the title and the number format of a column."""
    return COLUMNS.get(name, (name.replace("_", " "), "{:.2f}"))


def overview_table(models: Sequence[ModelResult]) -> TableCells:
    """Return a header and a row for each model; missing values are "-"."""
    names = metric_names(models)
    rows = ([model.name, *(format_value(model, name) for name in names)] for model in models)
    return [["model", *(column_format(name)[0] for name in names)], *rows]


def format_value(model: ModelResult, name: str) -> str:
    value = model.values.get(name)
    return "-" if value is None else column_format(name)[1].format(value)


def seed_average_table(spreads: Sequence[SeedSpread]) -> TableCells:
    """Return a header and a row with mean and deviation for each group of seeds."""
    names = [
        name for name in metric_names([spread.mean for spread in spreads]) if name != "parameters"
    ]
    rows = (
        [
            spread.mean.name,
            str(len(spread.names)),
            *(format_mean_deviation(spread, name) for name in names),
        ]
        for spread in spreads
    )
    return [["mean ± deviation", "seeds", *(column_format(name)[0] for name in names)], *rows]


def format_mean_deviation(spread: SeedSpread, name: str) -> str:
    mean, deviation = format_value(spread.mean, name), format_value(spread.deviation, name)
    return mean if mean == "-" else f"{mean} ± {deviation}"


def length_table(models: Sequence[ModelResult]) -> TableCells:
    """Return BLEU by source length: a header and a row for each model."""
    bins = length_bins(models)
    rows = (
        [model.name, *(f"{model.by_length[b]:.2f}" if b in model.by_length else "-" for b in bins)]
        for model in models
    )
    return [["BLEU by source words", *bins], *rows]


def length_bins(models: Sequence[ModelResult]) -> list[str]:
    return list(dict.fromkeys(name for model in models for name in model.by_length))


def render_table(cells: TableCells, left_aligned: Collection[int] = (0,)) -> str:
    """Return a table for a terminal; columns are aligned to the right, except `left_aligned`."""
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]

    def padded(index: int, text: str) -> str:
        padding = " " * (widths[index] - cell_len(text))
        return text + padding if index in left_aligned else padding + text

    return "\n".join(
        "  ".join(padded(index, text) for index, text in enumerate(row)).rstrip() for row in cells
    )


def as_text(report: ComparisonReport) -> str:
    """Return a report for a terminal."""
    tables = [render_table(overview_table(report.models))]
    tables += [render_table(seed_average_table(report.spreads))] if report.spreads else []
    tables[-1] = "\n".join([tables[-1], *report.notes])
    tables += [render_table(length_table(report.models))] if length_bins(report.models) else []
    return "\n\n".join(tables)


def as_markdown(report: ComparisonReport, pictures: TableCells) -> str:
    """Return a report as Markdown; `pictures` are pairs of a caption and a file name."""
    parts = [f"# {report.title}", markdown_table(overview_table(report.models))]
    parts += [markdown_table(seed_average_table(report.spreads))] if report.spreads else []
    parts += ["\n".join(f"- {note}" for note in report.notes)] if report.notes else []
    parts += [markdown_table(length_table(report.models))] if length_bins(report.models) else []
    parts += [f"![{escaped(caption)}](<{file}>)" for caption, file in pictures]
    return "\n\n".join(parts) + "\n"


def markdown_table(cells: TableCells) -> str:
    head, *rows = ["| " + " | ".join(map(escaped, row)) + " |" for row in cells]
    rule = "|---|" + "---:|" * (len(cells[0]) - 1)
    return "\n".join([head, rule, *rows])


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def as_csv(report: ComparisonReport) -> str:
    """Return a report as CSV with numbers in full; `row` is model, mean or deviation."""
    names, bins = metric_names(report.models), length_bins(report.models)
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["name", *names, *(f"bleu {name}" for name in bins), "row"])
    labeled_models = [("model", model) for model in report.models]
    for spread in report.spreads:
        labeled_models += [("mean", spread.mean), ("deviation", spread.deviation)]
    for kind, model in labeled_models:
        values = [model.values.get(name) for name in names]
        lengths = [model.by_length.get(name) for name in bins]
        writer.writerow([csv_cell(model.name), *values, *lengths, kind])
    return buffer.getvalue()


def as_json(report: ComparisonReport) -> str:
    """Return a report as a JSON object; missing and infinite values are null."""
    data = {
        "title": report.title,
        "notes": list(report.notes),
        "models": [{"name": model.name, **json_values(model)} for model in report.models],
        "seeds": [
            {
                "name": spread.mean.name,
                "models": spread.names,
                "mean": json_values(spread.mean),
                "deviation": json_values(spread.deviation),
            }
            for spread in report.spreads
        ],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def json_values(model: ModelResult) -> JsonObject:
    values = {
        name: None if value is None or not math.isfinite(value) else value
        for name, value in model.values.items()
    }
    return {**values, "by_length": model.by_length} if model.by_length else values
