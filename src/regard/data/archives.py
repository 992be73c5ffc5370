"""Convert archives of publishers to the files that regard reads, byte by byte the same each time.

The checksums of archives are not known here, so the converted file is what is verified.
"""

import io
import json
import re
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from gzip import GzipFile
from pathlib import Path
from typing import cast

from regard.errors import InputError

Recipe = Callable[[Path], Iterator[bytes]]
"""Converts the archive at a path to blocks of the file."""

IMDB_SHARE = 5  # reviews whose number is a multiple of this
MAX_MEMBER_BYTES = 1 << 24
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def imdb_sample(split: str) -> Recipe:
    """Return the recipe for every fifth review of aclImdb_v1.tar.gz, as JSON lines."""
    name_pattern = re.compile(rf"(?:.*/)?{split}/(neg|pos)/(\d+)_(\d+)\.txt")

    def convert(archive: Path) -> Iterator[bytes]:
        reviews: dict[tuple[int, str], dict[str, str | int]] = {}
        for name, text in read_tar(archive):
            match = name_pattern.fullmatch(name)
            if match is not None and int(match[2]) % IMDB_SHARE == 0:
                side, number, rating = match[1], int(match[2]), int(match[3])
                label = 0 if side == "neg" else 1
                review = {"id": f"{side}/{number}_{rating}", "label": label, "rating": rating}
                reviews[number, side] = {**review, "text": decode(text)}
        for key in sorted(reviews):
            yield to_json_line(reviews[key])

    return convert


def aeslc_mails(split: str) -> Recipe:
    """Return the recipe for the mails of a split, one file each in their repository."""
    name_pattern = re.compile(rf"(?:.*/)?enron_subject_line/{split}/([^/]+)\.subject")

    def convert(archive: Path) -> Iterator[bytes]:
        mails: dict[str, str] = {}
        for name, text in read_tar(archive):
            if match := name_pattern.fullmatch(name):
                mails[match[1]] = decode(text).strip()
        for name in sorted(mails):
            yield to_json_line({"id": name, "raw": mails[name]})

    return convert


def without_header(archive: Path) -> Iterator[bytes]:
    """Yield a JSON file without the lines of `#` before it."""
    is_header = True
    with archive.open("rb") as file:
        for line in file:
            is_header = is_header and line.startswith(b"#")
            if not is_header:
                yield line


def first_items(count: int) -> Recipe:
    """Return the recipe for the first items of a gzipped IDX file."""

    def convert(archive: Path) -> Iterator[bytes]:
        with GzipFile(archive) as file:
            magic = file.read(4)
            sizes = struct.unpack(f">{magic[3]}I", file.read(4 * magic[3]))
            yield magic + struct.pack(f">{len(sizes)}I", count, *sizes[1:])
            item_bytes = 1
            for size in sizes[1:]:
                item_bytes *= size
            yield file.read(count * item_bytes)

    return convert


def repacked_images(archive: Path) -> Iterator[bytes]:
    """Yield a zip of the PNG files of another, sorted, uncompressed and without dates."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in sorted(source.namelist()):
            if name.endswith(".png") and not name.startswith("__MACOSX"):
                check_member(name, source.getinfo(name).file_size)
                entry = zipfile.ZipInfo(name, ZIP_EPOCH)
                entry.create_system, entry.external_attr = 3, 0o644 << 16
                target.writestr(entry, source.read(name))
    yield buffer.getvalue()


def read_tar(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files in a tar, without unpacking it to the disk."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile():
                check_member(member.name, member.size)
                yield member.name, cast("io.BufferedReader", tar.extractfile(member)).read()


def check_member(name: str, size: int) -> None:
    if size > MAX_MEMBER_BYTES:
        raise InputError(f"{name}: {size:,} bytes; this is not the expected archive")


def decode(data: bytes) -> str:
    """Return a text with line feeds only."""
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def to_json_line(record: dict[str, str] | dict[str, str | int]) -> bytes:
    return (json.dumps(record, ensure_ascii=False) + "\n").encode()
