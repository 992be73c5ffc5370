"""Lines of text from a file, a gzipped file or standard input, in bounded memory.

Every error is one line that begins with the place: `file:line: what; what to do`.
"""

import gzip
import json
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

STDIN = "-"
BLOCK = 1 << 20
LONGEST = 1 << 26  # bytes in a line: more is no text, or text of another format
MARK = b"\xef\xbb\xbf"  # that some programs put before UTF-8
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def shown(path: Path | str) -> str:
    """How messages call a file."""
    return "standard input" if str(path) == STDIN else str(path)


def check_file(path: Path | str) -> None:
    """Fail before the work, not in the middle of it."""
    if str(path) == STDIN:
        return
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder; give a file")
    if not path.exists():
        raise ValueError(f"{path}: there is no such file")


@contextmanager
def opened(path: Path | str) -> Generator[BinaryIO]:
    """The bytes of a file, unpacked if its name ends in .gz; "-" is standard input."""
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
            raise ValueError(f"{path}: damaged gzip file ({reason}); fetch it again") from None


def lines(path: Path | str) -> Iterator[str]:
    """Each line without its end (LF or CRLF), of a file that is UTF-8 and not empty."""
    number = 0
    for block in _blocks(path):
        if not number:
            block = block.removeprefix(MARK)
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            raise ValueError(_not_utf8(path, number, block, error.start)) from None
        found = text.split("\n")
        if "\r" in text:
            found = [line.removesuffix("\r") for line in found]
        number += len(found)
        yield from found
    if not number:
        raise ValueError(_empty(path))


def parsed_lines(path: Path | str, each: str = "object") -> Iterator[tuple[str, Any]]:
    """What each line of JSON lines says, and where it stands; `each` is what it should be."""
    for number, line in enumerate(lines(path), 1):
        place = f"{shown(path)}:{number}"
        yield place, parsed(line, place, each)


def parsed(line: str, place: str, each: str = "object") -> Any:
    """What a line of JSON says."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise ValueError(f"{place}: not JSON ({reason}); put one {each} on each line") from None


def whole(path: Path | str) -> str:
    """All of a file that is UTF-8 and not empty, with LF at the end of its lines."""
    with opened(path) as file:
        data = file.read().removeprefix(MARK)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(_not_utf8(path, 0, data, error.start)) from None
    if not text:
        raise ValueError(_empty(path))
    return text.replace("\r\n", "\n")


def _empty(path: Path | str) -> str:
    once = "; it can be read only once" if str(path) == STDIN else ""
    return f"{shown(path)}: empty, no line to read{once}"


def _blocks(path: Path | str) -> Iterator[bytes]:
    """Whole lines, about a megabyte of them at a time, without the end of the last."""
    with opened(path) as file:
        rest = b""
        while block := file.read(BLOCK):
            head, end, tail = block.rpartition(b"\n")
            if end:
                yield rest + head
                rest = tail
            else:
                rest += tail
            if len(rest) > LONGEST:
                raise ValueError(f"{shown(path)}: a line has more than {LONGEST >> 20} MB: no text")
        if rest:
            yield rest


def _not_utf8(path: Path | str, before: int, block: bytes, at: int) -> str:
    """Where the first wrong byte is, and how to be rid of it."""
    line = before + block.count(b"\n", 0, at) + 1
    column = at - (block.rfind(b"\n", 0, at) + 1) + 1
    place = f"{shown(path)}:{line}: byte {column} is 0x{block[at]:02x}, which is not UTF-8"
    encoding = MARKS.get(block[:2], "LATIN1") if not before else "LATIN1"
    return f"{place}; convert the file, as with iconv -f {encoding} -t UTF-8"
