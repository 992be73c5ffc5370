"""The folder of predictions: finished parts, files that are merged from them, and a manifest.

NAME                    the predictions of the input file NAME
.regard/manifest.json   checksums of run, settings and inputs; the files that are finished
.regard/parts/NAME/     answers to parts of a file: START-ROWS-FAULTS
.lock                   who writes to this folder now
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from gzip import compress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from regard.batch_prediction.input_parts import GZIP_SUFFIX, InputFile, InputPart
from regard.batch_prediction.part_answers import PartAnswers
from regard.data.formats.lines import BLOCK_BYTES
from regard.errors import InputError
from regard.files import (
    JsonObject,
    draft_path,
    explain_write_errors,
    remove_drafts,
    sync_folder,
    write_atomic,
)
from regard.manifest import MANIFEST_FILE, DamagedFileError, Manifest, read_manifest
from regard.tasks.run_folder import LOCK_FILE
from regard.training.lock import FolderLock

WORK_FOLDER = ".regard"
PART_NAME = re.compile(r"(\d{12})-(\d+)-(\d+)")
SUBJECTS = {"run": "another run", "settings": "other settings", "inputs": "other inputs"}


class PartFile(NamedTuple):
    """The finished answers to a part of a file."""

    path: Path
    start: int
    rows: int
    faults: int


class OutputFolder:
    """A folder of predictions that is locked, and belongs to one run and one set of inputs.

    `identity` has the checksums of run, settings and inputs. A folder of another identity is
    refused.
    """

    def __init__(self, folder: Path, identity: JsonObject):
        self.folder, self.work = folder, folder / WORK_FOLDER
        check_is_free(folder)
        self.lock = FolderLock(folder, "another prediction")
        try:
            self.work.mkdir(exist_ok=True)
            self.facts: JsonObject = self.read_facts(identity)
            self.remove_all_drafts()
        except BaseException:
            self.lock.release()
            raise

    def read_facts(self, identity: JsonObject) -> JsonObject:
        """Return the facts of the manifest, after a comparison; write those of a new folder."""
        if not (self.work / MANIFEST_FILE).exists():
            facts = {**identity, "finished": {}}
            Manifest({}, facts).write(self.work)
            return facts
        try:
            facts = read_manifest(self.work).facts
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; give another folder for the output") from None
        for name, subject in SUBJECTS.items():
            if facts.get(name) != identity[name]:
                raise InputError(
                    f"{self.folder}: holds predictions of {subject}; give another folder, or "
                    "remove this one"
                )
        return facts

    def remove_all_drafts(self) -> None:
        """Remove what killed processes have left."""
        for folder in (self.folder, *(path for path in self.folder.rglob("*") if path.is_dir())):
            remove_drafts(folder)

    def close(self) -> None:
        self.lock.release()

    # --- parts

    @property
    def parts_folder(self) -> Path:
        return self.work / "parts"

    def finished_parts(self, file: InputFile) -> dict[int, PartFile]:
        """Return the finished parts of a file by their first row."""
        return {part.start: part for part in read_part_files(self.parts_folder / file.name)}

    # --- files

    def output_path(self, file: InputFile) -> Path:
        return self.folder / output_name(file, as_json=self.facts["settings"]["as_json"])

    def finished_file(self, file: InputFile) -> JsonObject | None:
        """Return the rows and faults of a file that is finished, or None if it is missing."""
        entry, path = self.facts["finished"].get(file.name), self.output_path(file)
        if entry is None or not path.exists():
            return None
        if path.stat().st_size != entry["size"]:
            raise InputError(
                f"{path}: was changed after it was written; move it away, to predict it again"
            )
        return entry

    def finish_file(self, file: InputFile, rows: int) -> None:
        """Merge the parts of a file, which have this number of rows."""
        parts = [part for _, part in sorted(self.finished_parts(file).items())]
        check_parts(parts, rows, file)
        path = self.output_path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        merge = merge_tables if file.format == "parquet" else merge_bytes
        draft = draft_path(path)
        try:
            with explain_write_errors(path):
                merge(file, [part.path for part in parts], draft)
                sync_file(draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(path.parent)
        faults = sum(part.faults for part in parts)
        entry = {"rows": rows, "faults": faults, "size": path.stat().st_size}
        self.facts["finished"][file.name] = entry
        Manifest({}, self.facts).write(self.work)
        shutil.rmtree(self.parts_folder / file.name, ignore_errors=True)

    def remove_parts(self) -> None:
        """Remove the folders of parts, when all files are finished."""
        shutil.rmtree(self.parts_folder, ignore_errors=True)


def check_is_free(folder: Path) -> None:
    """Refuse a folder of other files, which predictions could overwrite."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: this is a file; give a folder for the output")
    if not (folder / WORK_FOLDER).is_dir() and folder.is_dir():
        others = [path.name for path in folder.iterdir() if path.name != LOCK_FILE]
        if others:
            raise InputError(
                f"{folder}: holds other files ({min(others)}); give a new folder for the output"
            )


def output_name(file: InputFile, *, as_json: bool) -> str:
    """Return the name of the output: that of the input, or NAME.jsonl for JSON of a text."""
    if not as_json or file.format != "text":
        return file.name
    suffix = file.name[-len(GZIP_SUFFIX) :] if file.is_gzip else ""
    return f"{file.name.removesuffix(suffix)}.jsonl{suffix}"


def write_part(folder: Path, part: InputPart, answers: PartAnswers) -> PartFile:
    """Write the answers to a part of a file as a whole; `folder` is that of the file's parts."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{part.start:012}-{part.rows}-{answers.faults}"
    write_atomic(path, answers.data)
    return PartFile(path, part.start, part.rows, answers.faults)


def read_part_files(folder: Path) -> Iterator[PartFile]:
    """Yield the finished parts in the folder of a file's parts."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if match := PART_NAME.fullmatch(path.name):
            yield PartFile(path, int(match[1]), int(match[2]), int(match[3]))


def check_parts(parts: Sequence[PartFile], rows: int, file: InputFile) -> None:
    """Check that the parts have every row once."""
    start = 0
    for part in parts:
        if part.start != start:
            raise InputError(f"{part.path}: does not begin at row {start + 1}; remove this folder")
        start += part.rows
    if start != rows:
        raise InputError(f"{file.path}: has {rows} rows, but {start} answers; was it changed?")


def merge_bytes(file: InputFile, parts: Sequence[Path], target: Path) -> None:
    """Write the bytes of all parts one after another; for gzip, these are its members."""
    with target.open("wb") as output:
        for part in parts:
            with part.open("rb") as data:
                shutil.copyfileobj(data, output, BLOCK_BYTES)
        if file.is_gzip and not parts:
            output.write(compress(b"", mtime=0))


def merge_tables(file: InputFile, parts: Sequence[Path], target: Path) -> None:
    """Write a Parquet file with a row group for each part.

    A column that is missing or empty in some parts has the type of the others.
    """
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    schemas = [parquet.read_schema(part) for part in parts]
    if not schemas:
        schemas = [parquet.read_schema(file.path).append(arrow.field("error", arrow.string()))]
    schema = arrow.unify_schemas(schemas, promote_options="permissive")
    with parquet.ParquetWriter(target, schema) as writer:
        for part in parts:
            tables = [schema.empty_table(), parquet.read_table(part, partitioning=None)]
            table = arrow.concat_tables(tables, promote_options="permissive")
            writer.write_table(table.cast(schema))


def sync_file(path: Path) -> None:
    """Flush a file to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_apart(source: Path, output: Path) -> None:
    """Refuse an output folder that is, or lies in, the folder of the inputs."""
    if source.is_dir() and output.resolve().is_relative_to(source.resolve()):
        raise InputError(f"{output}: lies in the folder of the inputs; give a folder outside of it")


def check_names(files: Sequence[InputFile], *, as_json: bool) -> None:
    """Refuse inputs whose outputs would have the same name."""
    names = dict[str, InputFile]()
    for file in files:
        name = output_name(file, as_json=as_json)
        if name in names:
            raise InputError(
                f"{file.path}: its output would have the name of that of {names[name].path}; "
                "rename one of them"
            )
        names[name] = file
