"""Models beside one another: as a table of text, Markdown, CSV and JSON."""

import csv
import json
import math
from collections.abc import Sequence
from io import StringIO

from regard.metric.comparison import Measured

# What is shown of a model, and how it is written
COLUMNS = {
    "name": ("model", "{}"),
    "parameters": ("parameters", "{:,}"),
    "bleu": ("BLEU", "{:.2f}"),
    "chrf": ("chrF", "{:.2f}"),
    "exact": ("exact %", "{:.1f}"),
    "perplexity": ("perplexity", "{:.2f}"),
    "aer": ("AER", "{:.3f}"),
    "training_tokens": ("train tokens/s", "{:,.0f}"),
    "decoding_sentences": ("decode sent/s", "{:,.1f}"),
    "training_seconds": ("train s", "{:,.0f}"),
}
Cells = list[list[str]]


def overview(models: Sequence[Measured]) -> Cells:
    """A head, and a row for each model; what is not known is "-"."""
    head = [title for title, _ in COLUMNS.values()]
    return [head, *([cell(model, field) for field in COLUMNS] for model in models)]


def cell(model: Measured, field: str) -> str:
    value = getattr(model, field)
    return "-" if value is None else COLUMNS[field][1].format(value)


def lengths(models: Sequence[Measured]) -> Cells:
    """BLEU by words of the source: a head, and a row for each model."""
    bins = list(dict.fromkeys(name for model in models for name in model.by_length))
    rows = (
        [model.name, *(f"{model.by_length[b]:.2f}" if b in model.by_length else "-" for b in bins)]
        for model in models
    )
    return [["BLEU by source words", *bins], *rows]


def aligned(cells: Cells) -> str:
    """Columns for a terminal: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def markdown(title: str, models: Sequence[Measured], notes: Sequence[str], pictures: Cells) -> str:
    """The whole report; `pictures` are pairs of a caption and a file beside it."""
    parts = [
        f"# {title}",
        piped(overview(models)),
        "\n".join(f"- {note}" for note in notes),
        piped(lengths(models)),
        *(f"![{escaped(caption)}](<{file}>)" for caption, file in pictures),
    ]
    return "\n\n".join(parts) + "\n"


def piped(cells: Cells) -> str:
    head, *rows = ["| " + " | ".join(map(escaped, row)) + " |" for row in cells]
    rule = "|---|" + "---:|" * (len(cells[0]) - 1)
    return "\n".join([head, rule, *rows])


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def sheet(models: Sequence[Measured]) -> str:
    """CSV: numbers in full, nothing where there is none."""
    bins = list(dict.fromkeys(name for model in models for name in model.by_length))
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, *(f"bleu {name}" for name in bins)])
    for model in models:
        values = [getattr(model, field) for field in COLUMNS]
        rows.writerow([*values, *(model.by_length.get(name) for name in bins)])
    return text.getvalue()


def as_json(title: str, models: Sequence[Measured], notes: Sequence[str]) -> str:
    """One object; JSON has no word for infinity, so it is null like all that is not known."""
    plain = [
        {
            field: None if isinstance(value, float) and not math.isfinite(value) else value
            for field, value in model._asdict().items()
        }
        for model in models
    ]
    whole = {"title": title, "notes": list(notes), "models": plain}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
