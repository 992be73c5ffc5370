"""`regard list`: print the catalogues. Imports no torch."""

import json
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from regard.attention.catalogue import NORMALIZERS, SCORES, AttentionComponent
from regard.cli.options import JsonOption
from regard.config.presets import preset_description, preset_paths
from regard.data.catalogue import CORPORA
from regard.models.catalogue import MODELS
from regard.tasks.catalogue import TASKS, tasks_of_model

CatalogueRow = dict[str, str | list[str]]


def show(
    as_json: JsonOption = False,
) -> None:
    """List models, tasks, presets, corpora, attention scores and normalizers."""
    groups = inventory()
    if as_json:
        print(json.dumps(groups, indent=2))
        return
    width = None if sys.stdout.isatty() else 1000  # in a pipe, one line per entry
    console = Console(highlight=False, width=width)
    with console.capture() as text:
        for name, entries in groups.items():
            if entries:
                console.print(build_table(name, entries), "")
    print("\n".join(line.rstrip() for line in text.get().splitlines()))
    if empty := [name for name, entries in groups.items() if not entries]:
        print(f"Empty: {', '.join(empty)}")


def inventory() -> dict[str, list[CatalogueRow]]:
    """Return the rows of every catalogue, by its name."""
    return {
        "models": model_rows(),
        "tasks": [{"name": name, "what": entry.description} for name, entry in TASKS.items()],
        "presets": [
            {"name": name, "what": preset_description(path)}
            for name, path in preset_paths().items()
        ],
        "corpora": [
            {"name": name, "what": e.description, "languages": e.languages, "license": e.license}
            for name, e in CORPORA.items()
        ],
        "scores": attention_part_rows(SCORES),
        "normalizers": attention_part_rows(NORMALIZERS),
    }


def model_rows() -> list[CatalogueRow]:
    """Return a row for each model; "regard.models.luong:Luong" is in `regard/models/luong.py`."""
    return [
        {
            "name": name,
            "paper": entry.paper,
            "file": entry.import_path.partition(":")[0].replace(".", "/") + ".py",
            "tasks": list(tasks_of_model(name)),
        }
        for name, entry in MODELS.items()
    ]


def attention_part_rows(catalogue: Mapping[str, AttentionComponent]) -> list[CatalogueRow]:
    """Return a row for each part; "scores.Dot" is in the file `regard/attention/scores.py`."""
    return [
        {
            "name": name,
            "equation": component.equation,
            "paper": component.paper,
            "file": f"regard/attention/{component.implementation.partition('.')[0]}.py",
        }
        for name, component in catalogue.items()
    ]


def build_table(title: str, entries: list[CatalogueRow]) -> Table:
    """Return a table with a row per entry and a column per field.

    It has no column for the file, which would not fit in 80 columns; `--json` has it.
    """
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, header_style="dim"
    )
    fields = [field for field in entries[0] if field != "file"]
    for field in fields:
        table.add_column(field, overflow="fold")
    for entry in entries:
        values = (entry[field] for field in fields)
        table.add_row(*(v if isinstance(v, str) else ", ".join(v) for v in values))
    return table
