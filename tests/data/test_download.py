"""Tests of downloads from a local server that breaks off, lies, refuses or does not exist."""

import gzip
import io
import re
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request

import pytest

from regard.data import download
from regard.data.download import RemoteFile, SameSchemeRedirects, cache_folder, fetch_file
from regard.errors import InputError

TEXT = b"".join(b"line %d of a text\n" % n for n in range(20_000))
PACKED = gzip.compress(TEXT)
CHECKSUM = sha256(TEXT).hexdigest()


class FlakyServer(ThreadingHTTPServer):
    """A server of `files`; `behaviors` are the faults of the next requests, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FlakyHandler)
        self.files: dict[str, bytes] = {}
        self.behaviors: list[str] = []
        self.requests: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class FlakyHandler(BaseHTTPRequestHandler):
    server: FlakyServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        requested_range = self.headers.get("Range")
        self.server.requests.append((self.path, requested_range))
        behavior = self.server.behaviors.pop(0) if self.server.behaviors else "fine"
        if behavior.isdigit():
            self.send_error(int(behavior))
            return
        if behavior.startswith("to "):
            self.send_response(302)
            self.send_header("Location", behavior.removeprefix("to "))
            self.end_headers()
            return
        data = self.server.files.get(self.path)
        if data is None:
            self.send_error(404)
            return
        start = (
            int(re.findall(r"\d+", requested_range)[0])
            if requested_range and behavior != "whole"
            else 0
        )
        if start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if behavior != "no length":
            self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        rest = data[start:]
        self.wfile.write(rest[: len(rest) // 2] if behavior == "break" else rest)
        if behavior == "break":
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def server(monkeypatch) -> Iterator[FlakyServer]:
    for name in ("REGARD_MIRROR", "REGARD_CACHE", "http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "FIRST_PAUSE_SECONDS", 0.001)
    server = FlakyServer()
    server.files["/a.gz"] = PACKED
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def remote_file(server, name="a.gz", digest=CHECKSUM, member=""):
    return RemoteFile(f"{server.url}/{name}", f"deep/{name}", digest, member)


def file_names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_download(server, tmp_path):
    path = fetch_file(remote_file(server), tmp_path / "set" / "a")
    assert path.read_bytes() == TEXT
    assert file_names(path.parent) == ["a"]
    fetch_file(remote_file(server), path)
    assert server.requests == [("/a.gz", None)]


@pytest.mark.parametrize("name", ["a.txt", "a.zip"])
def test_plain_and_zip_files(server, tmp_path, name):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("about.txt", "another text")
        archive.writestr("fra.txt", TEXT)
    server.files["/a.txt"], server.files["/a.zip"] = TEXT, packed.getvalue()
    assert (
        fetch_file(remote_file(server, name, member="fra.txt"), tmp_path / "a").read_bytes() == TEXT
    )
    with pytest.raises(ValueError, match=r"a.zip: damaged \(.*other.txt"):
        fetch_file(remote_file(server, "a.zip", member="other.txt"), tmp_path / "b")
    assert file_names(tmp_path) == ["a"]


def test_zip_without_member_is_kept(server, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/1.png", "an image")
    data = server.files["/a.zip"] = packed.getvalue()
    path = fetch_file(remote_file(server, "a.zip", sha256(data).hexdigest()), tmp_path / "a.zip")
    assert path.read_bytes() == data


def test_broken_connections_are_resumed(server, tmp_path):
    server.behaviors = ["break", "break", "fine"]
    assert fetch_file(remote_file(server), tmp_path / "a").read_bytes() == TEXT
    starts = [
        int(re.findall(r"\d+", requested_range)[0])
        for _, requested_range in server.requests[1:]
        if requested_range
    ]
    assert len(starts) == 2
    assert 0 < starts[0] < starts[1] < len(PACKED)
    assert file_names(tmp_path) == ["a"]


def test_partial_file_is_resumed(server, tmp_path):
    """A partial file of a killed process is continued."""
    (tmp_path / "a.part").write_bytes(PACKED[:100])
    assert fetch_file(remote_file(server), tmp_path / "a").read_bytes() == TEXT
    assert server.requests == [("/a.gz", "bytes=100-")]


def test_complete_partial_file(server, tmp_path):
    (tmp_path / "a.part").write_bytes(PACKED)
    assert fetch_file(remote_file(server), tmp_path / "a").read_bytes() == TEXT
    assert file_names(tmp_path) == ["a"]


@pytest.mark.parametrize("partial_data", [PACKED + b"more", b"another version" * 9])
def test_partial_file_of_another_version(server, tmp_path, partial_data):
    (tmp_path / "a.part").write_bytes(partial_data)
    assert fetch_file(remote_file(server), tmp_path / "a").read_bytes() == TEXT
    assert file_names(tmp_path) == ["a"]


def test_server_without_ranges(server, tmp_path):
    (tmp_path / "a.part").write_bytes(PACKED[:100])
    server.behaviors = ["whole"]
    assert fetch_file(remote_file(server), tmp_path / "a").read_bytes() == TEXT
    assert len(server.requests) == 1


def test_busy_server(server, tmp_path):
    server.behaviors = ["503", "429", "fine"]
    assert fetch_file(remote_file(server), tmp_path / "a").read_bytes() == TEXT
    server.behaviors = ["503"] * 9
    with pytest.raises(ValueError, match=r"a.gz: HTTP 503 .*; repeat the command to resume"):
        fetch_file(remote_file(server), tmp_path / "b")


def test_a_wrong_checksum(server, tmp_path):
    server.files["/a.gz"] = gzip.compress(TEXT + b"x")
    with pytest.raises(ValueError, match=rf"a.gz: SHA-256 of the text is .*, not {CHECKSUM[:12]}"):
        fetch_file(remote_file(server), tmp_path / "a")
    assert file_names(tmp_path) == []
    server.files["/a.gz"] = PACKED
    assert fetch_file(remote_file(server), tmp_path / "a").read_bytes() == TEXT


def test_a_damaged_file(server, tmp_path):
    for data in (PACKED[:-20], b"<html>not found</html>", PACKED[:50] + b"\xff" * 50):
        server.files["/a.gz"] = data
        with pytest.raises(ValueError, match=r"a.gz: ") as caught:
            fetch_file(remote_file(server), tmp_path / "a")
        assert "\n" not in str(caught.value)
        assert file_names(tmp_path) == []


def test_a_missing_file(server, tmp_path):
    with pytest.raises(ValueError, match=r"none.gz: HTTP 404 Not Found; .*REGARD_MIRROR"):
        fetch_file(remote_file(server, "none.gz"), tmp_path / "a")
    assert len(server.requests) == 1


def test_no_network(server, tmp_path):
    with socket.socket() as unused_socket:  # bound, but not listening
        unused_socket.bind(("127.0.0.1", 0))
        unreachable = RemoteFile(
            f"http://127.0.0.1:{unused_socket.getsockname()[1]}/a.gz", "a.gz", CHECKSUM
        )
        with pytest.raises(ValueError, match=r"a.gz: .*refused.*REGARD_MIRROR"):
            fetch_file(unreachable, tmp_path / "a")
    unknown_host = RemoteFile("http://no-such-host.invalid/a.gz", "a.gz", CHECKSUM)
    with pytest.raises(ValueError, match="REGARD_MIRROR"):
        fetch_file(unknown_host, tmp_path / "a")


def test_only_http_addresses(server, tmp_path):
    local = RemoteFile("file:///etc/hostname", "a.gz", CHECKSUM)
    with pytest.raises(ValueError, match="not an http address"):
        fetch_file(local, tmp_path / "a")


@pytest.mark.parametrize("behavior", ["fine", "no length"])
def test_a_download_has_a_size_limit(server, tmp_path, behavior):
    server.behaviors = [behavior]
    with pytest.raises(InputError, match=r"a.gz: more than 1,000 bytes; this is not the expected"):
        fetch_file(remote_file(server)._replace(max_bytes=1000), tmp_path / "a")
    assert file_names(tmp_path) == []


def test_an_unpacked_file_has_a_size_limit(server, tmp_path):
    server.files["/a.gz"] = gzip.compress(bytes(1_000_000))
    with pytest.raises(InputError, match=r"a.gz: more than 100,000 bytes"):
        fetch_file(remote_file(server)._replace(max_bytes=100_000), tmp_path / "a")
    assert file_names(tmp_path) == []


def test_redirects_stay_in_their_scheme(server, tmp_path):
    server.behaviors = [f"to {server.url}/a.gz"]
    assert fetch_file(remote_file(server, "moved.gz"), tmp_path / "a").read_bytes() == TEXT
    for address in ("file:///etc/hostname", "ftp://127.0.0.1/a.gz"):
        server.behaviors = [f"to {address}"]
        with pytest.raises(InputError, match=r"redirects from http to (file|ftp) |HTTP 302"):
            fetch_file(remote_file(server), tmp_path / "b")
    assert file_names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [
        ("https", "https", True),
        ("http", "https", True),
        ("https", "http", False),
        ("https", "file", False),
    ],
)
def test_a_redirect_never_gives_up_encryption(before, after, is_allowed):
    request, headers = Request(f"{before}://host.invalid/a"), HTTPMessage()  # noqa: S310

    def redirect() -> Request | None:
        return SameSchemeRedirects().redirect_request(
            request, io.BytesIO(), 302, "Found", headers, f"{after}://other.invalid/a"
        )

    if is_allowed:
        assert redirect() is not None
    else:
        with pytest.raises(InputError, match=f"redirects from {before} to {after}"):
            redirect()


def test_the_cache_is_verified(server, tmp_path):
    path = fetch_file(remote_file(server), tmp_path / "a")
    path.write_bytes(TEXT.replace(b"line 7 ", b"lime 7 "))
    assert fetch_file(remote_file(server), path).read_bytes() == TEXT
    assert len(server.requests) == 2


class TestMirror:
    def test_a_folder(self, server, tmp_path, monkeypatch):
        mirror_folder = tmp_path / "mirror"
        monkeypatch.setenv("REGARD_MIRROR", str(mirror_folder))
        with pytest.raises(ValueError, match=r"deep/a.gz: the mirror \(REGARD_MIRROR\) lacks"):
            fetch_file(remote_file(server), tmp_path / "cache" / "a")
        (mirror_folder / "deep").mkdir(parents=True)
        (mirror_folder / "deep" / "a.gz").write_bytes(PACKED)
        assert fetch_file(remote_file(server), tmp_path / "cache" / "a").read_bytes() == TEXT
        assert server.requests == []
        (mirror_folder / "deep" / "a.gz").write_bytes(gzip.compress(b"other"))
        with pytest.raises(ValueError, match=r"deep/a.gz: SHA-256"):
            fetch_file(remote_file(server), tmp_path / "cache" / "b")
        assert (mirror_folder / "deep" / "a.gz").exists()

    def test_an_address(self, server, tmp_path, monkeypatch):
        monkeypatch.setenv("REGARD_MIRROR", f"{server.url}/mirror/")
        server.files["/mirror/deep/a.gz"] = PACKED
        unreachable = RemoteFile(
            "http://no-such-host.invalid/a.zip", "deep/a.gz", CHECKSUM, "a.txt"
        )
        assert fetch_file(unreachable, tmp_path / "a").read_bytes() == TEXT


def test_two_processes_download_once(server, tmp_path):
    """Two processes get the complete file, and only one downloads it."""
    code = (
        "import sys; from pathlib import Path; from regard.data.download import *;"
        "fetch_file(RemoteFile(sys.argv[1], '', sys.argv[2]), Path(sys.argv[3]))"
    )
    command = [sys.executable, "-c", code, f"{server.url}/a.gz", CHECKSUM, str(tmp_path / "a")]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert (tmp_path / "a").read_bytes() == TEXT
    assert len(server.requests) == 1


def test_progress_bar_on_a_terminal_only(server, tmp_path, monkeypatch, capfd):
    fetch_file(remote_file(server), tmp_path / "a")
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    fetch_file(remote_file(server), tmp_path / "b")
    out, err = capfd.readouterr()
    assert out == ""
    assert "a.gz" in err


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("REGARD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "regard"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "regard"
