"""`regard list`: what is there, from the literal catalogues. Imports no torch."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from regard.attention.catalogue import NORMALIZERS, SCORES, AttentionComponent
from regard.config.presets import preset_description, preset_paths
from regard.data.catalogue import CORPORA
from regard.models.catalogue import MODELS
from regard.tasks.catalogue import TASKS

CatalogueRow = dict[str, str | list[str]]


def show(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")] = False,
) -> None:
    """List models, tasks, presets, corpora, scores and normalisers."""
    groups = inventory()
    if as_json:
        print(json.dumps(groups, indent=2))
        return
    width = None if sys.stdout.isatty() else 1000  # a program that reads lines gets none folded
    console = Console(highlight=False, width=width)
    with console.capture() as text:
        for name, entries in groups.items():
            if entries:
                console.print(build_table(name, entries), "")
    print("\n".join(line.rstrip() for line in text.get().splitlines()))
    if empty := [name for name, entries in groups.items() if not entries]:
        print(f"none yet: {', '.join(empty)}")


def inventory() -> dict[str, list[CatalogueRow]]:
    """Every catalogue, by name. A room that is built brings its own, and replaces an empty list."""
    return {
        "models": model_rows(),
        "tasks": [{"name": name, "what": entry.description} for name, entry in TASKS.items()],
        "presets": [
            {"name": name, "what": preset_description(path)}
            for name, path in preset_paths().items()
        ],
        "corpora": [
            {"name": name, "what": e.description, "languages": e.languages, "licence": e.license}
            for name, e in CORPORA.items()
        ],
        "scores": attention_part_rows(SCORES),
        "normalisers": attention_part_rows(NORMALIZERS),
    }


def model_rows() -> list[CatalogueRow]:
    """A place such as "regard.models.luong:Luong" is in the file `regard/models/luong.py`."""
    return [
        {
            "name": name,
            "paper": entry.paper,
            "file": entry.import_path.partition(":")[0].replace(".", "/") + ".py",
            "tasks": list(entry.tasks),
        }
        for name, entry in MODELS.items()
    ]


def attention_part_rows(catalogue: Mapping[str, AttentionComponent]) -> list[CatalogueRow]:
    """The parts of attention; `made_by` "score.Dot" is in the file `regard/attention/scores.py`."""
    return [
        {
            "name": name,
            "equation": piece.equation,
            "paper": piece.paper,
            "file": f"regard/attention/{piece.implementation.partition('.')[0]}.py",
        }
        for name, piece in catalogue.items()
    ]


def build_table(title: str, entries: list[CatalogueRow]) -> Table:
    """One row an entry, one column a field; the file is left to `--json`, 80 columns are few."""
    grid = Table(
        title=title, title_justify="left", title_style="bold", box=None, header_style="dim"
    )
    fields = [field for field in entries[0] if field != "file"]
    for field in fields:
        grid.add_column(field, overflow="fold")
    for entry in entries:
        values = (entry[field] for field in fields)
        grid.add_row(*(v if isinstance(v, str) else ", ".join(v) for v in values))
    return grid
