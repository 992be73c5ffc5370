"""Data that a Python program already holds: lists of dicts, pandas and Hugging Face datasets.

Records are written to files in the format of a [data] table, so that a run that was trained on
them can be resumed, scored and moved like any other.
"""

import filecmp
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from regard.config.base import DataConfig
from regard.data.corpus import SPLITS, Record, check_split
from regard.errors import InputError
from regard.files import JsonObject, draft_path, write_atomic

SPLIT_ALIASES = {
    "train": "train",
    "dev": "dev",
    "validation": "dev",
    "valid": "dev",
    "test": "test",
}
MIN_RECORDS_TO_HOLD_OUT = 100  # different ones; a tenth of fewer may be none


@runtime_checkable
class DataFrameLike(Protocol):
    """The part of `pandas.DataFrame` that is used here."""

    def to_dict(self, orient: str) -> list[Record]: ...
    def itertuples(self) -> Iterable[object]: ...


@runtime_checkable
class DatasetLike(Protocol):
    """The part of `datasets.Dataset` that is used here."""

    features: Mapping[str, object]

    def __iter__(self) -> Iterator[Record]: ...


@runtime_checkable
class ArrayLike(Protocol):
    """A scalar or an array of numpy."""

    def tolist(self) -> object: ...


RecordData = Sequence[object] | DataFrameLike | DatasetLike


def to_records(data: RecordData, location: str = "data") -> list[Record]:
    """Return plain records from a list of dicts, a pandas DataFrame or a Dataset.

    Class labels of a Dataset become their names. Missing cells of a DataFrame are left out.

    >>> to_records([{"source": "one", "target": "1"}])
    [{'source': 'one', 'target': '1'}]
    """
    if isinstance(data, DataFrameLike):
        rows = data.to_dict(orient="records")
        # A missing cell is a NaN, which is the only value that differs from itself.
        records = [{str(k): v for k, v in row.items() if not is_missing(v)} for row in rows]
    elif isinstance(data, DatasetLike):
        names = {field: label_names(feature) for field, feature in data.features.items()}
        records = [{k: rename_labels(v, names[k]) for k, v in row.items()} for row in data]
    else:
        records = []
        for number, row in enumerate(data, 1):
            if not isinstance(row, Mapping):
                kind = type(row).__name__
                raise InputError(f"{location}: record {number} must be a dict, not {kind}")
            records.append(dict(row))
    if not records:
        raise InputError(f"{location}: there are no records; give at least one")
    return records


def is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def label_names(feature: object) -> list[str] | None:
    """Return the names of a ClassLabel, or of a sequence of them."""
    return getattr(feature, "names", None) or getattr(
        getattr(feature, "feature", None), "names", None
    )


def rename_labels(value: object, names: list[str] | None) -> object:
    if names is not None and isinstance(value, list):
        return [names[number] for number in value]
    return names[value] if names is not None and isinstance(value, int) else value


def split_records(data: RecordData | Mapping[str, RecordData]) -> dict[str, list[Record]]:
    """Return the records of each split; data without splits is all for training."""
    if not isinstance(data, Mapping):
        return {"train": to_records(data)}
    splits: dict[str, list[Record]] = {}
    for name, part in data.items():
        split = SPLIT_ALIASES.get(name, name)
        check_split(split, SPLITS)
        splits[split] = to_records(part, f"data, {name}")
    if "train" not in splits:
        raise InputError(f"data: there is no split 'train' among {', '.join(data)}")
    return splits


def matches_fields(table: type[DataConfig], record: Record) -> bool:
    """Return whether a record has the fields that a [data] table reads."""
    return any(set(fields) <= set(record) for fields in table.record_fields)


def find_table(tables: Iterable[type[DataConfig]], record: Record) -> type[DataConfig]:
    """Return the [data] table that reads records with these fields."""
    candidates = [table for table in tables if table.record_fields]
    for table in candidates:
        if matches_fields(table, record):
            return table
    if not candidates:
        raise InputError("data: this task makes its own data; name its kind or leave it out")
    expected = " or ".join(
        f"({', '.join(fields)})" for table in candidates for fields in table.record_fields
    )
    raise InputError(f"data: records must have the fields {expected}, not ({', '.join(record)})")


def write_records(
    splits: Mapping[str, Sequence[Record]], table: type[DataConfig], folder: Path
) -> JsonObject:
    """Write records to a new folder, and return the [data] table that reads them.

    A folder that exists must hold the same records: then the training on them can be resumed.
    """
    draft = draft_path(folder)
    draft.mkdir(parents=True)
    try:
        write = WRITERS[table.record_format]
        names = {split: write(splits[split], draft, split).name for split in splits}
        if not folder.exists():
            draft.replace(folder)
        elif not is_same_folder(draft, folder):
            raise InputError(f"{folder}: holds other records; take another folder for this run")
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    values: JsonObject = {"kind": table.model_fields["kind"].default}
    values |= {split: str(folder.resolve() / name) for split, name in names.items()}
    held_out = table.model_fields.get("held_out")
    if set(splits) == {"train"} and held_out is not None and held_out.default is not None:
        is_enough = len({repr(record) for record in splits["train"]}) >= MIN_RECORDS_TO_HOLD_OUT
        values["held_out"] = 0.1 if is_enough else 0.0
    all_records = [record for records in splits.values() for record in records]
    optional_fields = [
        name
        for name in table.optional_record_fields
        if all(name in record for record in all_records)
    ]
    if optional_fields:
        values["fields"] = {name: name for name in (*table.record_fields[0], *optional_fields)}
    if table.record_format == "text":
        values["unit"] = "line" if names["train"].endswith(".txt") else "file"
    return values


def is_same_folder(folder: Path, other: Path) -> bool:
    """Return whether two folders hold the same files."""
    comparison = filecmp.dircmp(folder, other)
    if comparison.left_only or comparison.right_only or comparison.funny_files:
        return False
    _, different, errors = filecmp.cmpfiles(folder, other, comparison.common_files, shallow=False)
    return not (different or errors) and all(
        is_same_folder(folder / name, other / name) for name in comparison.common_dirs
    )


# --- one writer for each format


def write_json_lines(records: Sequence[Record], folder: Path, split: str) -> Path:
    lines = []
    for number, record in enumerate(records, 1):
        values = {k: to_json(value) for k, value in record.items() if k != "image"}
        if "image" in record:
            values["image"] = image_path(record["image"], folder, f"{split}-{number}")
        lines.append(json.dumps(values, ensure_ascii=False))
    return write_lines(folder / f"{split}.jsonl", lines)


def to_json(value: object) -> object:
    """Return plain data: numpy's scalars and arrays become numbers and lists."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value.tolist() if isinstance(value, ArrayLike) else value


def is_image(value: object) -> bool:
    """Return whether a value is a Pillow image or an array of pixels."""
    return hasattr(value, "getexif") or (getattr(value, "ndim", 0) in (2, 3))


def write_image(value: Any, folder: Path, name: str) -> str:
    """Write an image to a file of the folder, and return its name."""
    from PIL import Image

    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not hasattr(value, "getexif"):
        value = Image.fromarray(value[..., 0] if value.shape[2:] == (1,) else value)
    image = value
    image.save(path)
    return name


def write_piano_rolls(records: Sequence[Record], folder: Path, split: str) -> Path:
    lines = (json.dumps(to_json(record["notes"])) for record in records)
    return write_lines(folder / f"{split}.jsonl", lines)


def write_texts(records: Sequence[Record], folder: Path, split: str) -> Path:
    """Write a line for each text, or a file for each if a text has several lines."""
    texts = [str(record["text"]) for record in records]
    if not any("\n" in text or "\r" in text for text in texts):
        return write_lines(folder / f"{split}.txt", texts)
    (folder / split).mkdir()
    for number, text in enumerate(texts, 1):
        write_atomic(folder / split / f"{number:08}.txt", text.encode())
    return folder / split


def write_tunes(records: Sequence[Record], folder: Path, split: str) -> Path:
    """Write tunes in ABC notation; those without a number get one."""
    tunes = (str(record["abc"]).strip() for record in records)
    numbered = (t if t.startswith("X:") else f"X:{n}\n{t}" for n, t in enumerate(tunes, 1))
    return write_lines(folder / f"{split}.abc", (f"{tune}\n" for tune in numbered))


def write_image_table(records: Sequence[Record], folder: Path, split: str) -> Path:
    """Write a TSV of the paths of images and their labels."""
    rows = (
        f"{image_path(record['image'], folder, f'{split}-{number}')}\t{record['label']}"
        for number, record in enumerate(records, 1)
    )
    return write_lines(folder / f"{split}.tsv", rows)


def image_path(value: object, folder: Path, name: str) -> str:
    """Return the path of an image, relative to the folder if it is written there."""
    if is_image(value):
        return write_image(value, folder, f"images/{name}.png")
    return str(Path(str(value)).resolve())


def write_image_folders(records: Sequence[Record], folder: Path, split: str) -> Path:
    """Write a folder of images for each class."""
    for number, record in enumerate(records, 1):
        name = f"{split}/{str(record['label']).replace('/', '_')}/{number:08}"
        if is_image(record["image"]):
            write_image(record["image"], folder, f"{name}.png")
        else:
            source = Path(str(record["image"]))
            target = folder / f"{name}{source.suffix}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return folder / split


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    write_atomic(path, "".join(f"{line}\n" for line in lines).encode())
    return path


WRITERS: dict[str, Callable[[Sequence[Record], Path, str], Path]] = {
    "jsonl": write_json_lines,
    "piano_rolls": write_piano_rolls,
    "text": write_texts,
    "abc": write_tunes,
    "image_table": write_image_table,
    "image_folders": write_image_folders,
}
