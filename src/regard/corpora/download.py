"""Files from the web or a mirror: resumed where they stopped, checked, whole or not there at all.

The checksum is of the text inside, so that it holds for every packing of the same text.
"""

import gzip
import http.client
import os
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

BLOCK = 1 << 16
TIMEOUT = 30.0  # seconds without a byte
TRIES = 4  # in a row that bring nothing new
PAUSE = 0.5  # seconds before the second try; twice as long before each further one
PASSING = {408, 425, 429, 500, 502, 503, 504}


class Source(NamedTuple):
    """Where a text file comes from, and what it must be."""

    url: str
    """Empty: nobody serves it, and only a mirror has it."""
    mirrored: str
    """Its place below a mirror."""
    sha256: str
    """Of the text, unpacked."""
    member: str = ""
    """The file inside a zip; empty: the zip itself, and its checksum."""


def cache_folder() -> Path:
    """REGARD_CACHE, or `regard` in the user's cache folder."""
    if given := os.environ.get("REGARD_CACHE"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "regard"


def fetched(source: Source, path: Path) -> Path:
    """The text, at `path`; from REGARD_MIRROR, a folder or an address, or else from upstream."""
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    mirror = os.environ.get("REGARD_MIRROR", "").rstrip("/")
    with _alone(path.parent / ".lock"):
        if path.is_file():  # another process was quicker
            return path
        if mirror and not _is_address(mirror):
            packed = Path(mirror).expanduser() / source.mirrored
            if not packed.is_file():
                raise ValueError(f"{packed}: the mirror (REGARD_MIRROR) lacks this file")
            _unpack(packed, source, path, str(packed))
            return path
        if not mirror and not source.url:
            raise ValueError(
                f"{source.mirrored}: no address serves this file, which was made from an archive; "
                "set REGARD_MIRROR to a folder or an address that has it"
            )
        url = f"{mirror}/{quote(source.mirrored)}" if mirror else source.url
        part = path.with_name(path.name + ".part")
        resumed = part.exists()
        _download(url, part)
        try:
            _unpack(part, source, path, url)
        except ValueError:
            part.unlink()
            if not resumed:
                raise
            _download(url, part)  # what was there may have been of another version
            _unpack(part, source, path, url)
        part.unlink()
    return path


def _is_address(mirror: str) -> bool:
    return mirror.startswith(("http://", "https://"))


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    """One process at a time; where the system has no such locks, the checksum must do."""
    with lock.open("ab") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(url: str, part: Path) -> None:
    """Append to `part` until the file is complete, from where it stopped."""
    fruitless, reason = 0, ""
    with _bar(url) as show:
        while fruitless < TRIES:
            before = part.stat().st_size if part.exists() else 0
            try:
                if _transfer(url, part, before, show):
                    return
                reason = "the connection broke off"
            except HTTPError as error:
                reason = f"HTTP {error.code} {error.reason}"
                if error.code not in PASSING:
                    raise ValueError(_unreachable(url, reason)) from None
            except URLError as error:
                raise ValueError(_unreachable(url, str(error.reason))) from None
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
            grown = part.exists() and part.stat().st_size > before
            fruitless = 0 if grown else fruitless + 1
            if fruitless:
                time.sleep(PAUSE * 2**fruitless / 2)
    raise ValueError(f"{url}: {reason}; the same command again goes on from here")


def _unreachable(url: str, reason: str) -> str:
    return (
        f"{url}: {reason}; go online, or set REGARD_MIRROR to a folder or an address that has the "
        "data sets"
    )


def _transfer(url: str, part: Path, start: int, show: Callable[[int, int], None]) -> bool:
    """One connection; whether the file is complete after it."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "regard"}
    if start:
        headers["Range"] = f"bytes={start}-"
    if not _is_address(url):
        raise ValueError(f"{url}: not an http address")
    request = Request(url, headers=headers)  # noqa: S310 (checked above)
    try:
        answer = urlopen(request, timeout=TIMEOUT)  # noqa: S310
    except HTTPError as error:
        if error.code != 416:  # no bytes after those: all are there, or too many
            raise
        return error.headers.get("Content-Range", "").endswith(f"/{start}") or _emptied(part)
    with answer, part.open("ab") as file:
        if answer.status != 206:  # the server starts anew, so do we
            start = 0
            file.truncate(0)
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length and length.isdigit() else 0
        done = start
        while block := answer.read(BLOCK):
            file.write(block)
            done += len(block)
            show(done, total)
    return not total or done == total


def _emptied(part: Path) -> bool:
    part.unlink(missing_ok=True)
    return False


def _unpack(packed: Path, source: Source, path: Path, name: str) -> None:
    """Write the text, and give it its name only if the checksum is right."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    digest = sha256()
    try:
        with _opened(packed, name, source.member) as text, draft.open("wb") as file:
            while block := text.read(BLOCK):
                digest.update(block)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != source.sha256:
            got, want = digest.hexdigest()[:12], source.sha256[:12]
            raise ValueError(f"{name}: SHA-256 of the text is {got}…, not {want}…: another version")
        draft.replace(path)
    except (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{name}: damaged ({reason})") from None
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _opened(packed: Path, name: str, member: str) -> Generator[IO[bytes]]:
    """The text of a file that is called `name`, which says how it is packed."""
    if name.endswith(".zip") and member:  # else it is wanted as it is
        with zipfile.ZipFile(packed) as archive, archive.open(member) as file:
            yield file
        return
    with gzip.open(packed) if name.endswith(".gz") else packed.open("rb") as file:
        yield cast("IO[bytes]", file)


@contextmanager
def _bar(url: str) -> Generator[Callable[[int, int], None]]:
    """A progress bar on a terminal; nothing in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
    bar.disable = not console.is_terminal
    with bar:
        task = bar.add_task(url.rpartition("/")[2], total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
