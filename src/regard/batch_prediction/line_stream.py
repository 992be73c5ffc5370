"""Lines of a stream, in chunks: the first are small, and none waits for input that is late."""

import select
from collections.abc import Iterable, Iterator
from io import BufferedIOBase

from regard.data.formats.lines import MAX_LINE_BYTES
from regard.errors import InputError

FIRST_CHUNK_LINES, MAX_CHUNK_LINES = 16, 512
MAX_CHUNK_BYTES = 1 << 22
READ_BYTES = 1 << 16

Line = str | InputError
"""A line of text without its end, or what is wrong with it."""
RawLine = bytes | None
"""A line without its line feed; None is one of more than MAX_LINE_BYTES, whose bytes are lost."""


def read_chunks(stream: BufferedIOBase, location: str) -> Iterator[list[Line]]:
    """Yield the lines of a stream in chunks, as soon as they arrive.

    The first chunk is small, so that its answers appear at once. Each further chunk may have twice
    the lines, up to a bound. A chunk ends early where the stream has no more bytes for now.
    `location` is the place of line {} in error messages.
    """
    number, limit = 1, FIRST_CHUNK_LINES
    for lines in raw_chunks(stream):
        start = 0
        while start < len(lines):
            chunk = lines[start : start + limit]
            yield [decode_line(line, n, location) for n, line in enumerate(chunk, number)]
            number, start = number + len(chunk), start + limit
            limit = min(2 * limit, MAX_CHUNK_LINES)


def raw_chunks(stream: BufferedIOBase) -> Iterator[list[RawLine]]:
    """Yield the lines that have arrived, at most MAX_CHUNK_LINES or MAX_CHUNK_BYTES, and a read."""
    lines, rest, size, rest_size = list[RawLine](), list[bytes](), 0, 0
    while block := stream.read1(READ_BYTES):
        head, newline, tail = block.rpartition(b"\n")
        if newline:
            first, *others = head.split(b"\n")
            is_too_long = rest_size + len(first) > MAX_LINE_BYTES
            lines += [None if is_too_long else b"".join([*rest, first]), *others]
            rest, rest_size, size = [], 0, size + len(block)
        rest_size += len(tail)
        if rest_size <= MAX_LINE_BYTES:
            rest.append(tail)
        else:  # the rest of this line is read, and not kept
            rest.clear()
        is_full = len(lines) >= MAX_CHUNK_LINES or size >= MAX_CHUNK_BYTES
        if lines and (is_full or not has_input(stream)):
            yield lines
            lines, size = [], 0
    if rest_size:
        lines.append(None if rest_size > MAX_LINE_BYTES else b"".join(rest))
    if lines:
        yield lines


def has_input(stream: BufferedIOBase) -> bool:
    """Return whether the stream can be read now; true where the system cannot tell."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):  # a stream in memory, or not on Unix
        return True


def decode_line(line: RawLine, number: int, location: str) -> Line:
    """Decode a line of UTF-8 without its end; a line that is too long or not UTF-8 is an error."""
    if line is None:
        return InputError(
            f"{location.format(number)}: a line of more than {MAX_LINE_BYTES >> 20} MB; "
            "give lines of text"
        )
    try:
        encoding = "utf-8-sig" if number == 1 else "utf-8"  # some programs write a BOM
        return line.decode(encoding).rstrip("\r\n")
    except UnicodeDecodeError as error:
        return InputError(
            f"{location.format(number)}: byte {error.start + 1} is 0x{line[error.start]:02x}, "
            "which is not UTF-8; convert it, as with iconv -f LATIN1 -t UTF-8"
        )


def decode_lines(lines: Iterable[bytes], location: str) -> Iterator[Line]:
    """Decode lines of UTF-8; a line that is not UTF-8 is an error."""
    return (decode_line(line, number, location) for number, line in enumerate(lines, 1))
