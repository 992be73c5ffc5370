"""The manifest of a folder: the size and the SHA-256 of each file.

While files are replaced, the manifest lists the old files and the new ones (`next_files`). So a
process that is killed leaves a folder that matches one of the two, or one that is clearly
incomplete.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from regard import parsing
from regard.errors import InputError
from regard.files import FileDigest, JsonObject, digest_file, sync_folder, write_atomic

MANIFEST_FILE = "manifest.json"
MANIFEST_FORMAT = 1


class DamagedFileError(InputError):
    """A file is missing, or differs from what was written."""


@dataclass(frozen=True)
class Manifest:
    """The files of a folder, and other facts, such as the versions of the software."""

    files: Mapping[str, FileDigest]
    facts: JsonObject = field(default_factory=dict)
    next_files: Mapping[str, FileDigest] | None = None

    def to_bytes(self) -> bytes:
        values: JsonObject = {"format": MANIFEST_FORMAT, **self.facts}
        values["files"] = digests_to_json(self.files)
        if self.next_files is not None:
            values["next_files"] = digests_to_json(self.next_files)
        values["sha256"] = checksum(values)
        return (json.dumps(values, indent=1, allow_nan=False) + "\n").encode()

    def write(self, folder: Path) -> None:
        write_atomic(folder / MANIFEST_FILE, self.to_bytes())
        sync_folder(folder)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; raise DamagedFileError if it is not as it was written."""
    path = folder / MANIFEST_FILE
    values = read_json_object(path)
    number = values.pop("format", None)
    if number != MANIFEST_FORMAT:
        raise DamagedFileError(
            f"{path}: has format {number!r}, but this version of regard reads format "
            f"{MANIFEST_FORMAT}; update regard"
        )
    expected = values.pop("sha256", None)
    if checksum({"format": number, **values}) != expected:
        raise DamagedFileError(f"{path}: was changed or damaged (its own checksum differs)")
    files, next_files = values.pop("files", None), values.pop("next_files", None)
    return Manifest(
        digests_from_json(files, path),
        values,
        None if next_files is None else digests_from_json(next_files, path),
    )


def verify_files(folder: Path, *, skip: Collection[str] = (), digests: bool = True) -> Manifest:
    """Compare the files of a folder with its manifest; raise DamagedFileError for the first fault.

    Return the manifest of the files that are there. Files in `skip` are not read. Without
    `digests`, only the sizes are compared.
    """
    manifest = read_manifest(folder)
    problem = find_damage(folder, manifest.files, skip, digests=digests)
    if problem is None:
        return Manifest(manifest.files, manifest.facts)
    if manifest.next_files is not None:
        if find_damage(folder, manifest.next_files, skip, digests=digests) is None:
            return Manifest(manifest.next_files, manifest.facts)
        problem = f"{problem}; the folder was not completely written"
    raise DamagedFileError(problem)


def find_damage(
    folder: Path, files: Mapping[str, FileDigest], skip: Collection[str], *, digests: bool
) -> str | None:
    """Return what is wrong with the first file that differs from its digest, or None."""
    for name, expected in files.items():
        path = folder / name
        if name in skip:
            continue
        if not path.is_file():
            return f"{path}: is missing, but {MANIFEST_FILE} lists it"
        if (size := path.stat().st_size) != expected.size:
            return (
                f"{path}: has {size} bytes, but {expected.size} in {MANIFEST_FILE}; "
                "the file was changed or damaged"
            )
        if digests and digest_file(path) != expected:
            return f"{path}: checksum differs from {MANIFEST_FILE}; the file was changed or damaged"
    return None


def replace_files(
    draft: Path, folder: Path, manifest: Manifest, *, last: str, keep: bool = False
) -> None:
    """Move the files of a draft into a folder, `last` as the last one.

    `manifest` lists the files that the folder has now; with `keep`, the others of them stay.
    """
    new_files = {path.name: digest_file(path) for path in sorted(draft.iterdir())}
    files = {**manifest.files, **new_files} if keep else new_files
    if manifest.files:
        Manifest(manifest.files, manifest.facts, files).write(folder)
    else:
        Manifest(files, manifest.facts).write(folder)
    for name in sorted(new_files, key=lambda name: name == last):
        (draft / name).replace(folder / name)
    sync_folder(folder)
    if manifest.files:
        Manifest(files, manifest.facts).write(folder)


def checksum(values: JsonObject) -> str:
    """Return the SHA-256 of JSON data, whatever its layout."""
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def digests_to_json(files: Mapping[str, FileDigest]) -> JsonObject:
    return {name: digest._asdict() for name, digest in files.items()}


def digests_from_json(values: object, path: Path) -> dict[str, FileDigest]:
    match values:
        case dict():
            return {name: digest_from_json(name, value, path) for name, value in values.items()}
        case _:
            raise DamagedFileError(f"{path}: lists no files; it is not a manifest")


def digest_from_json(name: str, value: object, path: Path) -> FileDigest:
    match value:
        case {"size": int() as size, "sha256": str() as digest} if Path(name).name == name:
            return FileDigest(size, digest)
        case _:
            raise DamagedFileError(f"{path}: {name}: expected size and sha256, not {value!r}")


def read_json_object(path: Path) -> JsonObject:
    """Read a file that holds one JSON object; raise DamagedFileError if it does not."""
    try:
        return parsing.read_json_object(path)
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path}: is missing") from error
    except InputError as error:
        raise DamagedFileError(str(error)) from error
