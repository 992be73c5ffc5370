"""Downloads from the web or a mirror: resumed, checked, and complete or absent.

Checksums are of the unpacked text, so they hold for every compression of the same text.
"""

import gzip
import http.client
import os
import struct
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import IO, NamedTuple, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from regard.data.archives import Recipe
from regard.errors import InputError
from regard.files import draft_path, remove_drafts

BLOCK_BYTES = 1 << 16
TIMEOUT_SECONDS = 30.0  # without a byte
MAX_FRUITLESS_TRIES = 4  # consecutive tries without a new byte
FIRST_PAUSE_SECONDS = 0.5  # before the second try; doubled before each later one
_verified_versions: set[tuple[str, int, int, str]] = set()  # files that this process has hashed
TRANSIENT_STATUSES = {408, 425, 429, 500, 502, 503, 504}


class RemoteFile(NamedTuple):
    """The address and the checksum of a text file."""

    url: str
    """Address of the file, or of an archive that `recipe` converts."""
    mirror_path: str
    """Path below the root of a mirror."""
    sha256: str
    """Checksum of the unpacked text."""
    member: str = ""
    """Name of the file inside a zip; empty to keep the zip itself, with its checksum."""
    max_bytes: int = 1 << 30
    """Limit of the download and of the unpacked text; more is refused before it is hashed."""
    recipe: Recipe | None = None
    """Converts the archive at `url` to the file; a mirror has the file itself."""
    is_mirror_converted: bool = False
    """Whether `recipe` also converts the file of a mirror."""


def cache_folder() -> Path:
    """Return REGARD_CACHE, or the folder `regard` in the user's cache folder."""
    if override := os.environ.get("REGARD_CACHE"):
        return Path(override).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "regard"


def fetch_file(source: RemoteFile, path: Path) -> Path:
    """Download the file to `path` unless it is there with the right checksum; return `path`.

    It comes from REGARD_MIRROR (a folder or an address) if that is set, else from `source.url`.
    """
    if is_verified(path, source):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    mirror = os.environ.get("REGARD_MIRROR", "").rstrip("/")
    with _exclusive_lock(path.parent / ".lock"):
        if is_verified(path, source):  # another process was quicker
            return path
        path.unlink(missing_ok=True)
        remove_drafts(path.parent)
        if mirror and not _is_url(mirror):
            packed = Path(mirror).expanduser() / source.mirror_path
            if not packed.is_file():
                raise InputError(f"{packed}: the mirror (REGARD_MIRROR) lacks this file")
            _unpack(packed, _mirror_file(source), path, str(packed))
        elif mirror:
            url = f"{mirror}/{quote(source.mirror_path)}"
            _download_and_unpack(url, _mirror_file(source), path)
        else:
            _download_and_unpack(source.url, source, path)
    return path


def _mirror_file(source: RemoteFile) -> RemoteFile:
    """Return the file as a mirror has it: without a recipe, unless that converts it as well."""
    return source if source.is_mirror_converted else source._replace(recipe=None)


def _download_and_unpack(url: str, source: RemoteFile, path: Path) -> None:
    """Download, and convert to `path`; an archive stays, since other files may be in it."""
    name = path.name + ".part" if source.recipe is None else "archive-" + url.rpartition("/")[2]
    packed = path.with_name(name)
    part = packed if source.recipe is None else packed.with_name(name + ".part")
    is_resumed = part.exists() or packed.exists()
    for is_last_try in (not is_resumed, True):
        if not (source.recipe and packed.exists()):
            _download(url, part, source.max_bytes)
            part.replace(packed)
        try:
            _unpack(packed, source, path, url)
        except ValueError:
            packed.unlink()  # a resumed part may have been of another version
            if is_last_try:
                raise
            continue
        break
    if source.recipe is None:
        packed.unlink()


def is_verified(path: Path, source: RemoteFile) -> bool:
    """Return whether a file of the cache has its checksum; an unchanged file is read once."""
    if not path.is_file():
        return False
    status = path.stat()
    version = (str(path), status.st_size, status.st_mtime_ns, source.sha256)
    if version not in _verified_versions:
        with path.open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != source.sha256:
                return False
        _verified_versions.add(version)
    return True


def _is_url(location: str) -> bool:
    return location.startswith(("http://", "https://"))


@contextmanager
def _exclusive_lock(lock_path: Path) -> Generator[None]:
    """Let one process in at a time; on Windows, which has no flock, only the checksum protects."""
    with lock_path.open("ab") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(url: str, part: Path, max_bytes: int) -> None:
    """Append to `part`, from its present end, until the file is complete."""
    fruitless_tries, reason = 0, ""
    with _progress_bar(url) as on_progress:
        while fruitless_tries < MAX_FRUITLESS_TRIES:
            before = part.stat().st_size if part.exists() else 0
            try:
                if _transfer(url, part, before, max_bytes, on_progress):
                    return
                reason = "the connection broke off"
            except InputError:  # too large, or a redirect that is not safe
                part.unlink(missing_ok=True)
                raise
            except HTTPError as error:
                reason = f"HTTP {error.code} {error.reason}"
                if error.code not in TRANSIENT_STATUSES:
                    raise InputError(_unreachable_message(url, reason)) from None
            except URLError as error:
                raise InputError(_unreachable_message(url, str(error.reason))) from None
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
            has_grown = part.exists() and part.stat().st_size > before
            fruitless_tries = 0 if has_grown else fruitless_tries + 1
            if fruitless_tries:
                time.sleep(FIRST_PAUSE_SECONDS * 2**fruitless_tries / 2)
    raise InputError(f"{url}: {reason}; repeat the command to resume the download")


def _unreachable_message(url: str, reason: str) -> str:
    return (
        f"{url}: {reason}; go online, or set REGARD_MIRROR to a folder or an address that has the "
        "data sets"
    )


class SameSchemeRedirects(HTTPRedirectHandler):
    """Follows a redirect within one scheme, or from http to https; refuses any other."""

    def redirect_request(
        self,
        req: Request,
        fp: object,
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> Request | None:
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in (before, "https"):
            raise InputError(
                f"{req.full_url}: redirects from {before} to {after} ({newurl[:80]}), which is not "
                "safe; set REGARD_MIRROR to a folder or an address that has the file"
            )
        response = cast("IO[bytes]", fp)
        return super().redirect_request(req, response, code, msg, headers, newurl)


def _check_size(url: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise InputError(f"{url}: more than {max_bytes:,} bytes; this is not the expected file")


def _transfer(
    url: str, part: Path, start: int, max_bytes: int, on_progress: Callable[[int, int], None]
) -> bool:
    """Download over one connection; return whether the file is complete."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "regard"}
    if start:
        headers["Range"] = f"bytes={start}-"
    if not _is_url(url):
        raise InputError(f"{url}: not an http address")
    request = Request(url, headers=headers)  # noqa: S310 (checked above)
    try:
        response = build_opener(SameSchemeRedirects).open(request, timeout=TIMEOUT_SECONDS)
    except HTTPError as error:
        if error.code != 416:  # no bytes after `start`: the part is complete, or too long
            raise
        return error.headers.get("Content-Range", "").endswith(f"/{start}") or _discard_part(part)
    with response, part.open("ab") as file:
        if response.status != 206:  # the server ignored the range and sends the complete file
            start = 0
            file.truncate(0)
        length = response.headers.get("Content-Length")
        total = start + int(length) if length and length.isdigit() else 0
        _check_size(url, total, max_bytes)
        bytes_done = start
        while block := response.read(BLOCK_BYTES):
            bytes_done += len(block)
            _check_size(url, bytes_done, max_bytes)
            file.write(block)
            on_progress(bytes_done, total)
    return not total or bytes_done == total


def _discard_part(part: Path) -> bool:
    part.unlink(missing_ok=True)
    return False


def _unpack(packed: Path, source: RemoteFile, path: Path, name: str) -> None:
    """Write the unpacked text, and rename it to `path` only if the checksum is right."""
    draft = draft_path(path)
    digest, size = sha256(), 0
    try:
        with _unpacked_blocks(packed, name, source) as blocks, draft.open("wb") as file:
            for block in blocks:
                size += len(block)
                _check_size(name, size, source.max_bytes)
                digest.update(block)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != source.sha256:
            actual, expected = digest.hexdigest()[:12], source.sha256[:12]
            raise InputError(
                f"{name}: SHA-256 of the text is {actual}…, not {expected}…; "
                "the file is damaged or of another version"
            )
        draft.replace(path)
    except (
        *(EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile, KeyError),
        *(tarfile.TarError, struct.error, IndexError),
        *(NotImplementedError, RuntimeError),  # unknown compression, encryption
    ) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{name}: damaged ({reason})") from None
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _unpacked_blocks(
    packed: Path, name: str, source: RemoteFile
) -> Generator[Iterable[bytes], None, None]:
    """Open the file inside `packed`, or convert the archive."""
    if source.recipe is not None:
        yield source.recipe(packed)
        return
    with _open_unpacked(packed, name, source.member) as text:
        yield iter(lambda: text.read(BLOCK_BYTES), b"")


@contextmanager
def _open_unpacked(packed: Path, name: str, member: str) -> Generator[IO[bytes]]:
    """Open the text inside `packed`; the suffix of `name` gives the compression."""
    if name.endswith(".zip") and member:  # without a member, the zip itself is the file
        with zipfile.ZipFile(packed) as archive, archive.open(member) as file:
            yield file
        return
    with gzip.open(packed) if name.endswith(".gz") else packed.open("rb") as file:
        yield cast("IO[bytes]", file)


@contextmanager
def _progress_bar(url: str) -> Generator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal, and nothing in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
    bar.disable = not console.is_terminal
    with bar:
        task = bar.add_task(url.rpartition("/")[2], total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
