"""Input files, cut into parts of a few thousand rows, which are predicted one by one.

A part is the same bytes at every start, because its end depends on the rows alone. So a part that
is finished need not be done again.
"""

import io
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from regard.batch_prediction.line_stream import RawLine, raw_chunks
from regard.data.formats.lines import BLOCK_BYTES, open_binary
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import one_line

PART_ROWS, PART_BYTES = 2048, 1 << 22
PARQUET_BATCH_ROWS = 256
FileFormat = Literal["text", "json_lines", "parquet"]
FORMATS: dict[str, FileFormat] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json_lines"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}  # any other suffix is that of a text, one input a line
GZIP_SUFFIX = ".gz"


class InputFile(NamedTuple):
    """A file of inputs; `name` is its path relative to the folder of inputs."""

    name: str
    path: str
    format: FileFormat
    is_gzip: bool = False

    @property
    def row_location(self) -> str:
        """The place of row {} in messages."""
        row = ": row {}" if self.format == "parquet" else ":{}"
        return self.path.replace("{", "{{").replace("}", "}}") + row

    def count_rows(self) -> int:
        """Return the number of rows, by reading the file once."""
        if self.format == "parquet":
            with open_parquet(self.path) as file:
                return file.metadata.num_rows
        rows, last = 0, b"\n"
        with open_binary(self.path) as file:
            while block := file.read(BLOCK_BYTES):
                rows, last = rows + block.count(b"\n"), block[-1:]
        return rows + (last != b"\n")

    def read_parts(self) -> Iterator["InputPart"]:
        """Yield the parts of the file in order."""
        return read_parquet_parts(self) if self.format == "parquet" else read_line_parts(self)


class InputPart(NamedTuple):
    """Rows of a file from `start` on, which counts from 0.

    `data` are lines that end in line feeds, or a table in Arrow's stream format. `too_long` are the
    rows, counted from the start of the part, whose lines were too long to keep.
    """

    file: InputFile
    start: int
    rows: int
    data: bytes
    too_long: tuple[int, ...] = ()

    @property
    def rows_location(self) -> str:
        """The place of the rows in messages."""
        return f"{self.file.path}: rows {self.start + 1} to {self.start + self.rows}"

    def lines(self) -> list[RawLine]:
        """Return the lines of the part without their ends."""
        lines = list[RawLine](self.data.split(b"\n")[:-1])
        for row in self.too_long:
            lines[row] = None
        return lines

    def to_bytes(self) -> bytes:
        """Return the part as a line of JSON, and its data."""
        header = {**self._asdict(), "data": ""}
        return json.dumps(header).encode() + b"\n" + self.data

    @classmethod
    def from_bytes(cls, message: bytes) -> "InputPart":
        header, _, data = message.partition(b"\n")
        values: JsonObject = json.loads(header)
        file, too_long = InputFile(*values["file"]), tuple(values["too_long"])
        return cls(file, values["start"], values["rows"], data, too_long)


def find_files(source: Path) -> list[InputFile]:
    """Return the file, or all visible files in a folder and its subfolders, by name."""
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder")
    if not source.is_dir():
        return [input_file(source, source.name)]
    names = sorted(
        path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()
    )
    visible = [name for name in names if not any(p.startswith(".") for p in Path(name).parts)]
    if not visible:
        raise InputError(f"{source}: no files; give a folder of text, JSON lines or Parquet")
    return [input_file(source / name, name) for name in visible]


def input_file(path: Path, name: str) -> InputFile:
    """Return a file with its format, by its suffix."""
    is_gzip = path.suffix.lower() == GZIP_SUFFIX
    suffix = Path(path.stem).suffix if is_gzip else path.suffix
    file_format = FORMATS.get(suffix.lower(), "text")
    if is_gzip and file_format == "parquet":
        raise InputError(f"{path}: Parquet is compressed already; decompress it with gunzip")
    return InputFile(name, str(path), file_format, is_gzip)


def read_line_parts(file: InputFile) -> Iterator[InputPart]:
    """Yield parts of PART_ROWS lines, or of fewer if they have PART_BYTES."""
    lines, too_long, size, start = list[bytes](), list[int](), 0, 0
    with open_binary(file.path) as stream:
        for chunk in raw_chunks(cast("BufferedIOBase", stream)):
            for line in chunk:
                if line is None:
                    too_long.append(len(lines))
                lines.append(line or b"")
                size += len(lines[-1])
                if len(lines) == PART_ROWS or size >= PART_BYTES:
                    yield InputPart(file, start, len(lines), to_block(lines), tuple(too_long))
                    start, size = start + len(lines), 0
                    lines, too_long = [], []
    if lines:
        yield InputPart(file, start, len(lines), to_block(lines), tuple(too_long))


def to_block(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


@contextmanager
def open_parquet(path: str) -> Generator[Any]:
    """Open a Parquet file; every fault of it is an InputError."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (arrow.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise InputError(f"{path}: damaged, or not Parquet ({one_line(error)})") from None


def read_parquet_parts(file: InputFile) -> Iterator[InputPart]:
    """Yield parts of at most PART_ROWS rows, or of fewer if they have PART_BYTES."""
    arrow = import_module("pyarrow")
    batches, rows, size, start = [], 0, 0, 0
    with open_parquet(file.path) as table:
        for batch in table.iter_batches(batch_size=PARQUET_BATCH_ROWS):
            if rows and rows + batch.num_rows > PART_ROWS:
                yield InputPart(file, start, rows, table_bytes(arrow.Table.from_batches(batches)))
                batches, start, rows, size = [], start + rows, 0, 0
            batches.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if size >= PART_BYTES:
                yield InputPart(file, start, rows, table_bytes(arrow.Table.from_batches(batches)))
                batches, start, rows, size = [], start + rows, 0, 0
    if rows:
        yield InputPart(file, start, rows, table_bytes(arrow.Table.from_batches(batches)))


def table_bytes(table: Any) -> bytes:
    """Return an Arrow table in Arrow's stream format."""
    buffer = io.BytesIO()
    with import_module("pyarrow").ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue()
