"""`regard.fit`: train a run with one call."""

from collections.abc import Mapping
from pathlib import Path
from signal import SIGINT, raise_signal
from typing import get_args

from regard.config.base import DataConfig
from regard.config.settings import Settings
from regard.data.formats.lines import parse_json_lines
from regard.data.records import (
    RecordData,
    find_table,
    matches_fields,
    split_records,
    write_records,
)
from regard.errors import InputError
from regard.files import JsonObject
from regard.run import Run
from regard.tasks.catalogue import find_task, table_classes
from regard.tasks.load import resolve_settings
from regard.tasks.run_folder import DATA_FOLDER
from regard.training.progress import train_with_progress
from regard.training.trainer import Trainer
from regard.view.progress import progress_bar

DataSource = str | Path | RecordData | JsonObject
"""A path, the name of a data set, records, records by split, or a [data] table."""


def fit(
    task: str,
    data: DataSource | None = None,
    model: str | JsonObject | None = None,
    *,
    steps: int | None = None,
    folder: Path | str | None = None,
    settings: JsonObject | None = None,
    progress: bool = True,
    accept_changed_data: bool = False,
) -> Run:
    """Train a model on data, and return the run with its best weights.

    `data` is one of:

    - records: a list of dicts, a `pandas.DataFrame` or a `datasets.Dataset`; they are copied into
      the folder of the run
    - a dict of records by split, such as {"train": ..., "test": ...}, or a `DatasetDict`
    - the path of a file or folder in a format of the task
    - the name of a public data set or of synthetic data, as `regard list` shows them
    - a dict with the [data] table of the settings, such as {"kind": "dates", "size": 1000}

    If there is no dev split, a tenth of the records serves, and another tenth as test; below 100
    records nothing is held out. Without data, the task uses its default. `model` is a kind of model
    or a [model] table. `settings` holds further tables, such as {"train": {"learning_rate": 3e-4}}.
    `folder` is where the run is kept, by default `runs/TASK`; the same call again resumes a
    training that stopped. Files that were changed since then are an error, unless
    `accept_changed_data` is set.

    >>> import regard
    >>> pairs = [{"source": "one two", "target": "1 2"}, {"source": "two one", "target": "2 1"}]
    >>> run = regard.fit("translate", pairs, steps=2, folder="runs/numbers", progress=False)
    >>> len(run.predict(["one two"]))
    1
    """
    folder = Path(folder if folder is not None else Path("runs", task))
    chosen = resolve_settings(fit_settings(task, data, model, steps, folder, settings), name="fit")
    return train_run(chosen, folder, progress=progress, accept_changed_data=accept_changed_data)


def train_run(
    settings: Settings, folder: Path, *, progress: bool, accept_changed_data: bool = False
) -> Run:
    """Train to the end of the settings; an interrupt keeps what was trained so far.

    Other stop signals, such as SIGTERM, act on the program after the state was saved.
    """
    with progress_bar("training", settings.train.steps, enabled=progress) as bar:
        trainer = Trainer(settings, folder, bar.log, accept_changed_data=accept_changed_data)
        stop = train_with_progress(trainer, bar)
        if stop is not None:
            bar.log(f"{folder}: stopped after step {trainer.training.steps_done}; call again")
    if stop not in (None, SIGINT):
        raise_signal(stop)
    return Run.load(folder, device=settings.train.device)


def fit_settings(
    task: str,
    data: DataSource | None,
    model: str | JsonObject | None,
    steps: int | None,
    folder: Path,
    settings: JsonObject | None,
) -> JsonObject:
    """Return the settings as plain tables; records are written to the folder."""
    find_task(task)
    values: JsonObject = dict(settings or {})
    values["task"] = task
    if data is not None:
        values["data"] = {**data_table(task, data, folder), **values.get("data", {})}
    if model is not None:
        table = {"kind": model} if isinstance(model, str) else dict(model)
        values["model"] = {**table, **values.get("model", {})}
    if steps is not None:
        values["train"] = {**values.get("train", {}), "steps": steps}
    return values


def data_table(task: str, data: DataSource, folder: Path) -> JsonObject:
    """Return the [data] table of what a caller gave as data."""
    tables = {
        kind: table
        for kind, table in table_classes(task, "data").items()
        if issubclass(table, DataConfig)
    }
    if isinstance(data, str | Path):
        return named_table(tables, data)
    if isinstance(data, Mapping) and "kind" in data:
        return dict(data)
    splits = split_records(data)
    table = find_table(tables.values(), splits["train"][0])
    for split, records in splits.items():
        for number, record in enumerate(records, 1):
            if not matches_fields(table, record):
                fields = " or ".join(f"({', '.join(names)})" for names in table.record_fields)
                raise InputError(f"data, {split}: record {number} must have the fields {fields}")
    return write_records(splits, table, folder / DATA_FOLDER)


def named_table(tables: Mapping[str, type[DataConfig]], data: str | Path) -> JsonObject:
    """Return the [data] table of a path, of a kind of synthetic data or of a public data set."""
    if Path(data).exists():
        return {"kind": file_kind(tables, Path(data)), "train": str(data)}
    if data in tables and "train" not in tables[str(data)].model_fields:
        return {"kind": data}
    public = tables.get("public")
    if public is not None and data in get_args(public.model_fields["name"].annotation):
        return {"kind": "public", "name": data}
    names = [kind for kind, table in tables.items() if "train" not in table.model_fields]
    raise InputError(
        f"data: {str(data)!r} is no file, and no data of this task ({', '.join(names)})"
    )


def file_kind(tables: Mapping[str, type[DataConfig]], path: Path) -> str:
    """Return the kind of [data] that reads a file; JSON lines show it by their fields."""
    kinds = [kind for kind, table in tables.items() if "train" in table.model_fields]
    if len(kinds) == 1:
        return kinds[0]
    if path.suffix == ".jsonl":
        _, record = next(parse_json_lines(path))
        for kind in kinds:
            if isinstance(record, dict) and matches_fields(tables[kind], record):
                return kind
    raise InputError(
        f"data: {path} may be of several kinds ({', '.join(kinds)}); "
        f'give a table, such as {{"kind": "{kinds[0]}", "train": "{path}"}}'
    )
