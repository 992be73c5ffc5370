"""Models beside one another: as tables of text, Markdown, CSV and JSON."""

import csv
import json
import math
from collections.abc import Collection, Sequence
from io import StringIO
from typing import Any, NamedTuple

from rich.cells import cell_len

from regard.metric.comparison import Measured, Spread

# What can be told of a model, in this order, and how it is written
COLUMNS = {
    "parameters": ("parameters", "{:,}"),
    "bleu": ("BLEU", "{:.2f}"),
    "chrf": ("chrF", "{:.2f}"),
    "exact": ("exact %", "{:.1f}"),
    "accuracy": ("accuracy %", "{:.2f}"),
    "f1": ("F1 %", "{:.2f}"),
    "slot_f1": ("slot F1 %", "{:.2f}"),
    "intent": ("intent %", "{:.2f}"),
    "sentence": ("sentence %", "{:.2f}"),
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
Cells = list[list[str]]


class Told(NamedTuple):
    """All that a report is made of, but its pictures."""

    title: str
    models: Sequence[Measured]
    spreads: Sequence[Spread]
    notes: Sequence[str]


def columns(models: Sequence[Measured]) -> list[str]:
    """What is told of these, in the order of COLUMNS; what is not named there before speeds."""
    order = {name: number for number, name in enumerate(COLUMNS)}
    names = dict.fromkeys(name for model in models for name in model.values)
    return sorted(names, key=lambda name: order.get(name, order["aer"]))


def column(name: str) -> tuple[str, str]:
    """Its title, and how its values are written."""
    return COLUMNS.get(name, (name.replace("_", " "), "{:.2f}"))


def overview(models: Sequence[Measured]) -> Cells:
    """A head, and a row for each model; what is not known is "-"."""
    names = columns(models)
    rows = ([model.name, *(cell(model, name) for name in names)] for model in models)
    return [["model", *(column(name)[0] for name in names)], *rows]


def cell(model: Measured, name: str) -> str:
    value = model.values.get(name)
    return "-" if value is None else column(name)[1].format(value)


def averages(spreads: Sequence[Spread]) -> Cells:
    """Over seeds: a head, and a row for each group; the size of a model is not a matter of luck."""
    names = [name for name in columns([one.mean for one in spreads]) if name != "parameters"]
    rows = (
        [one.mean.name, str(len(one.names)), *(both(one, name) for name in names)]
        for one in spreads
    )
    return [["mean ± deviation", "seeds", *(column(name)[0] for name in names)], *rows]


def both(one: Spread, name: str) -> str:
    middle, away = cell(one.mean, name), cell(one.deviation, name)
    return middle if middle == "-" else f"{middle} ± {away}"


def lengths(models: Sequence[Measured]) -> Cells:
    """BLEU by words of the source: a head, and a row for each model."""
    bins = bins_of(models)
    rows = (
        [model.name, *(f"{model.by_length[b]:.2f}" if b in model.by_length else "-" for b in bins)]
        for model in models
    )
    return [["BLEU by source words", *bins], *rows]


def bins_of(models: Sequence[Measured]) -> list[str]:
    return list(dict.fromkeys(name for model in models for name in model.by_length))


def aligned(cells: Cells, left: Collection[int] = (0,)) -> str:
    """Columns for a terminal: these (the first) to the left, numbers to the right."""
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]

    def padded(at: int, text: str) -> str:
        room = " " * (widths[at] - cell_len(text))
        return text + room if at in left else room + text

    return "\n".join(
        "  ".join(padded(at, text) for at, text in enumerate(row)).rstrip() for row in cells
    )


def text(told: Told) -> str:
    """For a terminal."""
    tables = [aligned(overview(told.models))]
    tables += [aligned(averages(told.spreads))] if told.spreads else []
    tables[-1] = "\n".join([tables[-1], *told.notes])
    tables += [aligned(lengths(told.models))] if bins_of(told.models) else []
    return "\n\n".join(tables)


def markdown(told: Told, pictures: Cells) -> str:
    """The whole report; `pictures` are pairs of a caption and a file beside it."""
    parts = [f"# {told.title}", piped(overview(told.models))]
    parts += [piped(averages(told.spreads))] if told.spreads else []
    parts += ["\n".join(f"- {note}" for note in told.notes)] if told.notes else []
    parts += [piped(lengths(told.models))] if bins_of(told.models) else []
    parts += [f"![{escaped(caption)}](<{file}>)" for caption, file in pictures]
    return "\n\n".join(parts) + "\n"


def piped(cells: Cells) -> str:
    head, *rows = ["| " + " | ".join(map(escaped, row)) + " |" for row in cells]
    rule = "|---|" + "---:|" * (len(cells[0]) - 1)
    return "\n".join([head, rule, *rows])


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def sheet(told: Told) -> str:
    """CSV: numbers in full, nothing where there is none; `row` says of what: model, mean …"""
    names, bins = columns(told.models), bins_of(told.models)
    written = StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["name", *names, *(f"bleu {name}" for name in bins), "row"])
    each = [("model", model) for model in told.models]
    for one in told.spreads:
        each += [("mean", one.mean), ("deviation", one.deviation)]
    for kind, model in each:
        values = [model.values.get(name) for name in names]
        rows.writerow([model.name, *values, *(model.by_length.get(name) for name in bins), kind])
    return written.getvalue()


def as_json(told: Told) -> str:
    """One object; JSON has no word for infinity, so it is null like all that is not known."""
    whole = {
        "title": told.title,
        "notes": list(told.notes),
        "models": [{"name": model.name, **plain(model)} for model in told.models],
        "seeds": [
            {
                "name": one.mean.name,
                "models": one.names,
                "mean": plain(one.mean),
                "deviation": plain(one.deviation),
            }
            for one in told.spreads
        ],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def plain(model: Measured) -> dict[str, Any]:
    values = {
        name: None if value is None or not math.isfinite(value) else value
        for name, value in model.values.items()
    }
    return {**values, "by_length": model.by_length} if model.by_length else values
