"""Downloads from a server on this machine that breaks off, lies, refuses and is not there."""

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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from regard.data import download
from regard.data.download import RemoteFile, cache_folder, fetch_file

TEXT = b"".join(b"line %d of a text\n" % n for n in range(20_000))
PACKED = gzip.compress(TEXT)
SUM = sha256(TEXT).hexdigest()


class Web(ThreadingHTTPServer):
    """Serves `files`; `moods` say for each request in turn what goes wrong."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files: dict[str, bytes] = {}
        self.moods: list[str] = []
        self.asked: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    server: Web

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        mood = self.server.moods.pop(0) if self.server.moods else "fine"
        if mood.isdigit():
            self.send_error(int(mood))
            return
        data = self.server.files.get(self.path)
        if data is None:
            self.send_error(404)
            return
        start = int(re.findall(r"\d+", wanted)[0]) if wanted and mood != "whole" else 0
        if start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        rest = data[start:]
        self.wfile.write(rest[: len(rest) // 2] if mood == "break" else rest)
        if mood == "break":
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def web(monkeypatch) -> Iterator[Web]:
    for name in ("REGARD_MIRROR", "REGARD_CACHE", "http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "FIRST_PAUSE_SECONDS", 0.001)
    server = Web()
    server.files["/a.gz"] = PACKED
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def source(web, name="a.gz", digest=SUM, member=""):
    return RemoteFile(f"{web.url}/{name}", f"deep/{name}", digest, member)


def there(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_download(web, tmp_path):
    path = fetch_file(source(web), tmp_path / "set" / "a")
    assert path.read_bytes() == TEXT
    assert there(path.parent) == ["a"]
    fetch_file(source(web), path)
    assert web.asked == [("/a.gz", None)]


@pytest.mark.parametrize("name", ["a.txt", "a.zip"])
def test_other_packings(web, tmp_path, name):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("about.txt", "no text of ours")
        archive.writestr("fra.txt", TEXT)
    web.files["/a.txt"], web.files["/a.zip"] = TEXT, packed.getvalue()
    assert fetch_file(source(web, name, member="fra.txt"), tmp_path / "a").read_bytes() == TEXT
    with pytest.raises(ValueError, match=r"a.zip: damaged \(.*other.txt"):
        fetch_file(source(web, "a.zip", member="other.txt"), tmp_path / "b")
    assert there(tmp_path) == ["a"]


def test_a_zip_as_it_is(web, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/1.png", "an image")
    data = web.files["/a.zip"] = packed.getvalue()
    path = fetch_file(source(web, "a.zip", sha256(data).hexdigest()), tmp_path / "a.zip")
    assert path.read_bytes() == data


def test_it_goes_on_where_it_broke_off(web, tmp_path):
    web.moods = ["break", "break", "fine"]
    assert fetch_file(source(web), tmp_path / "a").read_bytes() == TEXT
    starts = [int(re.findall(r"\d+", wanted)[0]) for _, wanted in web.asked[1:] if wanted]
    assert len(starts) == 2
    assert 0 < starts[0] < starts[1] < len(PACKED)
    assert there(tmp_path) == ["a"]


def test_the_next_run_goes_on(web, tmp_path):
    """What a killed process left behind is used."""
    (tmp_path / "a.part").write_bytes(PACKED[:100])
    assert fetch_file(source(web), tmp_path / "a").read_bytes() == TEXT
    assert web.asked == [("/a.gz", "bytes=100-")]


def test_all_was_there_but_the_name(web, tmp_path):
    (tmp_path / "a.part").write_bytes(PACKED)
    assert fetch_file(source(web), tmp_path / "a").read_bytes() == TEXT
    assert there(tmp_path) == ["a"]


@pytest.mark.parametrize("left", [PACKED + b"more", b"another version" * 9])
def test_what_was_left_is_of_another_version(web, tmp_path, left):
    (tmp_path / "a.part").write_bytes(left)
    assert fetch_file(source(web), tmp_path / "a").read_bytes() == TEXT
    assert there(tmp_path) == ["a"]


def test_a_server_that_knows_no_ranges(web, tmp_path):
    (tmp_path / "a.part").write_bytes(PACKED[:100])
    web.moods = ["whole"]
    assert fetch_file(source(web), tmp_path / "a").read_bytes() == TEXT
    assert len(web.asked) == 1


def test_a_server_that_is_busy(web, tmp_path):
    web.moods = ["503", "429", "fine"]
    assert fetch_file(source(web), tmp_path / "a").read_bytes() == TEXT
    web.moods = ["503"] * 9
    with pytest.raises(ValueError, match=r"a.gz: HTTP 503 .*; the same command again goes on"):
        fetch_file(source(web), tmp_path / "b")


def test_a_wrong_checksum(web, tmp_path):
    web.files["/a.gz"] = gzip.compress(TEXT + b"x")
    with pytest.raises(ValueError, match=rf"a.gz: SHA-256 of the text is .*, not {SUM[:12]}"):
        fetch_file(source(web), tmp_path / "a")
    assert there(tmp_path) == []
    web.files["/a.gz"] = PACKED
    assert fetch_file(source(web), tmp_path / "a").read_bytes() == TEXT


def test_a_damaged_file(web, tmp_path):
    for wrong in (PACKED[:-20], b"<html>not found</html>", PACKED[:50] + b"\xff" * 50):
        web.files["/a.gz"] = wrong
        with pytest.raises(ValueError, match=r"a.gz: ") as caught:
            fetch_file(source(web), tmp_path / "a")
        assert "\n" not in str(caught.value)
        assert there(tmp_path) == []


def test_a_missing_file(web, tmp_path):
    with pytest.raises(ValueError, match=r"none.gz: HTTP 404 Not Found; .*REGARD_MIRROR"):
        fetch_file(source(web, "none.gz"), tmp_path / "a")
    assert len(web.asked) == 1


def test_no_network(web, tmp_path):
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        nowhere = RemoteFile(f"http://127.0.0.1:{taken.getsockname()[1]}/a.gz", "a.gz", SUM)
        with pytest.raises(ValueError, match=r"a.gz: .*refused.*REGARD_MIRROR"):
            fetch_file(nowhere, tmp_path / "a")
    no_name = RemoteFile("http://no-such-host.invalid/a.gz", "a.gz", SUM)
    with pytest.raises(ValueError, match="REGARD_MIRROR"):
        fetch_file(no_name, tmp_path / "a")


def test_only_the_web(web, tmp_path):
    local = RemoteFile("file:///etc/hostname", "a.gz", SUM)
    with pytest.raises(ValueError, match="not an http address"):
        fetch_file(local, tmp_path / "a")


class TestMirror:
    def test_a_folder(self, web, tmp_path, monkeypatch):
        mirror = tmp_path / "mirror"
        monkeypatch.setenv("REGARD_MIRROR", str(mirror))
        with pytest.raises(ValueError, match=r"deep/a.gz: the mirror \(REGARD_MIRROR\) lacks"):
            fetch_file(source(web), tmp_path / "cache" / "a")
        (mirror / "deep").mkdir(parents=True)
        (mirror / "deep" / "a.gz").write_bytes(PACKED)
        assert fetch_file(source(web), tmp_path / "cache" / "a").read_bytes() == TEXT
        assert web.asked == []
        (mirror / "deep" / "a.gz").write_bytes(gzip.compress(b"other"))
        with pytest.raises(ValueError, match=r"deep/a.gz: SHA-256"):
            fetch_file(source(web), tmp_path / "cache" / "b")
        assert (mirror / "deep" / "a.gz").exists()

    def test_an_address(self, web, tmp_path, monkeypatch):
        monkeypatch.setenv("REGARD_MIRROR", f"{web.url}/mirror/")
        web.files["/mirror/deep/a.gz"] = PACKED
        elsewhere = RemoteFile("http://no-such-host.invalid/a.zip", "deep/a.gz", SUM, "a.txt")
        assert fetch_file(elsewhere, tmp_path / "a").read_bytes() == TEXT


def test_two_processes_do_not_mix(web, tmp_path):
    """Both get the whole file, and one of them does not download it."""
    code = (
        "import sys; from pathlib import Path; from regard.data.download import *;"
        "fetch_file(RemoteFile(sys.argv[1], '', sys.argv[2]), Path(sys.argv[3]))"
    )
    words = [sys.executable, "-c", code, f"{web.url}/a.gz", SUM, str(tmp_path / "a")]
    both = [subprocess.Popen(words) for _ in range(2)]
    assert [one.wait(60) for one in both] == [0, 0]
    assert (tmp_path / "a").read_bytes() == TEXT
    assert len(web.asked) == 1


def test_a_bar_is_shown_on_a_terminal(web, tmp_path, monkeypatch, capfd):
    fetch_file(source(web), tmp_path / "a")
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    fetch_file(source(web), tmp_path / "b")
    out, err = capfd.readouterr()
    assert out == ""
    assert "a.gz" in err


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("REGARD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "regard"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "regard"
