"""Digests of the files that a [data] table names, to notice that they were changed."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from regard.config.base import Config
from regard.data.formats.lines import STDIN
from regard.files import FileDigest, digest_file

FILE_FIELDS = ("train", "dev", "test", "folder", "database", "alignments")


def named_files(table: Config) -> Iterator[str]:
    """Yield the files and folders that a table of settings names, and those of its parts."""
    for name in type(table).model_fields:
        value = getattr(table, name)
        if isinstance(value, Config):
            yield from named_files(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Config):
            for part in value:
                yield from named_files(part)
        elif name in FILE_FIELDS and value is not None:
            yield from (value,) if isinstance(value, str) else value


def digest_data(*tables: Config) -> dict[str, FileDigest]:
    """Return the digest of each file or folder that tables name; synthetic data have none."""
    paths = {name: Path(name) for table in tables for name in named_files(table) if name != STDIN}
    return {name: digest_path(path) for name, path in paths.items() if path.exists()}


def digest_path(path: Path) -> FileDigest:
    """Return the digest of a file, or of the names and contents of all files in a folder."""
    if path.is_file():
        return digest_file(path)
    total, digest = 0, sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        part = digest_file(file)
        total += part.size
        digest.update(f"{file.relative_to(path).as_posix()}\0{part.sha256}\n".encode())
    return FileDigest(total, digest.hexdigest())
