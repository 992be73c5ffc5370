"""Read lines of text from a file, a gzipped file or standard input, in bounded memory.

Every error is one line: `file:line: what is wrong; what to do`.
"""

import csv
import gzip
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, cast

from regard.data.formats.skipped_rows import SkippedRows
from regard.errors import InputError
from regard.parsing import parse_json

STDIN = "-"
BLOCK_BYTES = 1 << 20
SAMPLE_BYTES = 1 << 14  # around a wrong byte, to guess the encoding from
MIN_BYTES_TO_GUESS = 20  # bytes that are not ASCII
MAX_ASCII = 127
MAX_LINE_BYTES = 1 << 26  # longer lines are not text, or text in another format
MAX_TEXT_BYTES = 1 << 30  # of a file that is read as one text
UTF8_BOM = b"\xef\xbb\xbf"  # some programs write it before UTF-8
UTF16_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def display_name(path: Path | str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if str(path) == STDIN else str(path)


def check_file(path: Path | str) -> None:
    """Check that a path is a file, before any work is done."""
    if str(path) == STDIN:
        return
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give a file")
    if not path.exists():
        raise InputError(f"{path}: there is no such file")


@contextmanager
def open_binary(path: Path | str) -> Generator[BinaryIO]:
    """Open a file for reading, decompressed if its name ends in .gz; "-" is standard input."""
    check_file(path)
    if str(path) == STDIN:
        yield sys.stdin.buffer
        return
    open_file = gzip.open if Path(path).suffix == ".gz" else open
    with open_file(path, "rb") as file:
        try:
            yield cast("BinaryIO", file)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{path}: damaged gzip file ({reason}); download it again") from None


def read_lines(path: Path | str) -> Iterator[str]:
    """Yield each line without its end (LF or CRLF); the file must be UTF-8 and not empty."""
    number = 0
    for block in _line_blocks(path):
        if not number:
            block = block.removeprefix(UTF8_BOM)
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            raise InputError(_not_utf8_message(path, number, block, error.start)) from None
        decoded_lines = text.split("\n")
        if "\r" in text:
            decoded_lines = [line.removesuffix("\r") for line in decoded_lines]
        number += len(decoded_lines)
        yield from decoded_lines
    if not number:
        raise InputError(_empty_message(path))


def parse_json_lines(
    path: Path | str, expected: str = "object", skipped: SkippedRows | None = None
) -> Iterator[tuple[str, object]]:
    """Yield location and value of each line; `expected` names the kind of value in errors."""
    skipped = skipped or SkippedRows()
    for number, line in enumerate(read_lines(path), 1):
        location = f"{display_name(path)}:{number}"
        with skipped.row(location):
            yield location, parse_json_line(line, location, expected)


def parse_json_line(line: str, location: str, expected: str = "object") -> object:
    """Return the value of a line; `expected` names the kind of value in errors."""
    return parse_json(line, location, f"put one {expected} on each line")


def parse_csv(path: Path | str, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV, each with the number of its first line."""
    csv.field_size_limit(MAX_LINE_BYTES)  # a cell may be as long as a line; the default is 128 kB
    reader = csv.reader(lines, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"{display_name(path)}:{number}: not CSV ({error}); put a cell that contains a "
                "quote in quotes, and double the quote"
            ) from None
        if row is None:
            return
        yield number, row


def read_text(path: Path | str) -> str:
    """Read a file that must be UTF-8 and not empty; lines end in LF."""
    with open_binary(path) as file:
        data = file.read(MAX_TEXT_BYTES + 1).removeprefix(UTF8_BOM)
    if len(data) > MAX_TEXT_BYTES:
        raise InputError(
            f"{path}: more than {MAX_TEXT_BYTES >> 20} MB; split it into several files"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(_not_utf8_message(path, 0, data, error.start)) from None
    if not text:
        raise InputError(_empty_message(path))
    return text.replace("\r\n", "\n")


def _empty_message(path: Path | str) -> str:
    hint = "; it can be read only once" if str(path) == STDIN else ""
    return f"{display_name(path)}: no lines (empty){hint}"


def _line_blocks(path: Path | str) -> Iterator[bytes]:
    """Yield blocks of complete lines, about a megabyte each, without the last line end."""
    with open_binary(path) as file:
        rest = b""
        while block := file.read(BLOCK_BYTES):
            head, end, tail = block.rpartition(b"\n")
            if end:
                yield rest + head
                rest = tail
            else:
                rest += tail
            if len(rest) > MAX_LINE_BYTES:
                raise InputError(
                    f"{display_name(path)}: a line of more than {MAX_LINE_BYTES >> 20} MB; "
                    "give a text file"
                )
        if rest:
            yield rest


def _not_utf8_message(path: Path | str, lines_before: int, block: bytes, byte_index: int) -> str:
    """Describe the location of the first wrong byte, and how to convert the file."""
    line = lines_before + block.count(b"\n", 0, byte_index) + 1
    column = byte_index - (block.rfind(b"\n", 0, byte_index) + 1) + 1
    problem = (
        f"{display_name(path)}:{line}: byte {column} is 0x{block[byte_index]:02x}, which is "
        "not UTF-8"
    )
    is_utf16 = not lines_before and block[:2] in UTF16_BOMS
    encoding = UTF16_BOMS[block[:2]] if is_utf16 else guess_encoding(block, byte_index)
    return f"{problem}; convert the file, as with iconv -f {encoding} -t UTF-8"


def guess_encoding(data: bytes, byte_index: int) -> str:
    """Return the likely encoding of bytes that are not UTF-8, by the text around a wrong byte."""
    start = max(0, byte_index - SAMPLE_BYTES // 2)
    sample = data[start : start + SAMPLE_BYTES]
    has_enough = sum(byte > MAX_ASCII for byte in sample) >= MIN_BYTES_TO_GUESS
    if not has_enough or find_spec("charset_normalizer") is None:
        return "LATIN1"
    best = import_module("charset_normalizer").from_bytes(sample).best()
    return "LATIN1" if best is None else best.encoding.replace("_", "-").upper()
