"""Hostile requests: each has the right status, leaks nothing, and leaves one line in the log."""

import io
import json
import logging
import socket
import struct
import time
import zlib
from collections.abc import Iterator

import httpx
import pytest
from PIL import Image

from regard.serve.limits import ApiError, Limits
from regard.serve.protocol import TimedProtocol
from regard.serve.served import read_pixels
from tests.serve.conftest import LiveServer

LEAKS = ("Traceback", "site-packages", "/src/", ".py")


class ImpatientProtocol(TimedProtocol):
    """A protocol whose clients are soon too slow."""

    header_seconds = rest_seconds = 0.2


@pytest.fixture(scope="module")
def impatient_server(runs) -> Iterator[LiveServer]:
    limits = Limits(max_body_bytes=200_000, body_seconds=0.2, rest_seconds=0.2)
    with LiveServer(runs, limits=limits, protocol=ImpatientProtocol) as live:
        yield live


class LogLines(logging.Handler):
    """The lines of the server's log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def wait_for_one(self) -> dict[str, object]:
        """Return the one line that a request leaves, perhaps after its answer."""
        while not self.lines:
            time.sleep(0.01)
        [line] = self.lines
        self.lines.clear()
        return json.loads(line)


@pytest.fixture
def log(server: LiveServer) -> Iterator[LogLines]:
    handler, logger = LogLines(), logging.getLogger("regard.serve")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    # Requests of earlier tests may have an answer but no line yet; theirs come before this one's.
    exchange(server, request(path="/nothing-here", method="GET"))
    while not any('"status": 404' in line for line in handler.lines):
        time.sleep(0.01)
    handler.lines.clear()
    yield handler
    logger.removeHandler(handler)


def exchange(server: LiveServer, data: bytes, *more: bytes) -> tuple[int, str]:
    """Send bytes as they are, and return the status and the rest of the answer."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(data)
        for part in more:
            connection.sendall(part)
        answer = b""
        while chunk := connection.recv(65_536):
            answer += chunk
    text = answer.decode()
    return int(text.split()[1]), text


def request(
    body: bytes = b"",
    path: str = "/api/runs/judge/predict",
    *,
    method: str = "POST",
    headers: str = "",
    length: int | None = None,
) -> bytes:
    """Return a request as bytes that closes its connection."""
    size = len(body) if length is None else length
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {size}\r\n{headers}\r\n"
    return head.encode("latin-1") + body


def check_answer(answer: tuple[int, str], status: int, log: LogLines) -> None:
    assert answer[0] == status, answer[1]
    head, _, body = answer[1].partition("\r\n\r\n")
    assert "application/json" in head
    assert "\n" not in json.loads(body).get("error", {"message": ""})["message"]
    assert not any(leak in body for leak in LEAKS)
    assert log.wait_for_one()["status"] == status


BODIES = {
    "nothing": (b"", 422),
    "half an object": (b"{", 422),
    "not UTF-8": (b'{"inputs": ["\xff"]}', 400),
    "deep": (b'{"inputs": ' + b"[" * 50_000, 400),
    "a number of 5,000 digits": (b'{"examples": [' + b"9" * 5000 + b"]}", 400),
    "NaN": (b'{"inputs": NaN}', 422),
    "half a surrogate pair": (b'{"inputs": ["\\ud800"]}', 400),
    "a key with half a surrogate pair": (b'{"\\ud800": 1}', 422),
    "10,000 words": (json.dumps({"inputs": ["word " * 10_000]}).encode(), 413),
    "too many inputs": (json.dumps({"inputs": ["x"] * 1000}).encode(), 413),
    "an unknown object": (b'{"inputs": [{"__class__": "x"}]}', 422),
    "a list": (b"[]", 422),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(server, log, name):
    body, status = BODIES[name]
    check_answer(exchange(server, request(body)), status, log)


@pytest.mark.parametrize("text", ["", " ", "\x00\x01\x1b[31m", "\u202e\u2066", "\r\n", "a" * 1999])
@pytest.mark.parametrize("name", ["translator", "writer", "talker", "judge"])
def test_texts_of_control_characters(server, log, name, text):
    body = json.dumps({"inputs": [text]}).encode()
    answer = exchange(server, request(body, f"/api/runs/{name}/predict"))
    assert answer[0] in (200, 400, 422), answer[1]
    check_answer(answer, answer[0], log)


def test_bodies_of_50_megabytes(server, log):
    megabyte = b"x" * 1_000_000
    answer = exchange(server, request(b"", length=50_000_000), *[megabyte] * 50)
    check_answer(answer, 413, log)
    chunk = b"f4240\r\n" + megabyte + b"\r\n"
    head = request().replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    check_answer(exchange(server, head, *[chunk] * 50, b"0\r\n\r\n"), 413, log)
    length = exchange(server, request(length=10**30))  # h11 refuses it
    check_answer(length, 400, log)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # the greeting of TLS
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"G\x00T / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (request(headers="X: a\x00b\r\n"), 400),
        (request(headers="Content-Length: 5\r\n"), 400),
        (request(headers="X-Big: " + "x" * 70_000 + "\r\n"), 431),
        (request(headers="".join(f"X-{n}: y\r\n" for n in range(9000))), 431),
    ],
)
def test_what_is_not_http(server, log, data, status):
    answer = exchange(server, data)
    assert answer[0] == status, answer[1]
    assert not any(leak in answer[1] for leak in LEAKS)
    assert log.wait_for_one()["status"] == status


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1@evil", ""])
def test_other_hosts(server, log, host):
    data = request().replace(b"Host: localhost", f"Host: {host}".encode())
    check_answer(exchange(server, data), 421, log)


@pytest.mark.parametrize(
    "path",
    [
        "/../../../etc/passwd",
        "/api/runs/..%2f..%2fetc%2fpasswd/predict",
        "/api/runs/%00/predict",
        "/api/runs/judge%0d%0aX:%20y/predict",
        "//etc/passwd",
        "/api/runs/" + "a" * 5000 + "/predict",
        "/api/runs/{name}/predict",
        "/v1/models/../../..",
    ],
)
def test_paths(server, log, path):
    body = b'{"inputs": ["x"]}'
    method = "GET" if path.startswith("/v1") else "POST"
    check_answer(exchange(server, request(body, path, method=method)), 404, log)


def test_other_methods(server, log):
    for method in ("DELETE", "TRACE", "BREW"):
        answer = exchange(server, request(method=method))
        check_answer(answer, 405, log)


# --- slow and broken connections


def test_headers_that_never_end(impatient_server, log):
    answer = exchange(impatient_server, b"POST / HTTP/1.1\r\nHost: localhost\r\nX: ")
    check_answer(answer, 408, log)


def test_a_body_that_never_ends(impatient_server, log):
    answer = exchange(impatient_server, request(b'{"inputs": [', length=1000))
    check_answer(answer, 408, log)


def test_the_rest_of_a_refused_body_that_never_ends(impatient_server, log):
    data = request(b"x", length=10**9).replace(b"Connection: close\r\n", b"")
    check_answer(exchange(impatient_server, data), 413, log)


def test_a_chunk_without_a_length(server, log):
    head = request().replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    assert exchange(server, head + b"zz\r\n")[0] == 400
    assert log.wait_for_one()["status"] in (400, 499)  # the route sees that the body has no end


def test_a_connection_that_breaks_in_the_body(server, log):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request(b'{"inputs": [', length=1000))
    assert log.wait_for_one()["status"] == 499


def test_a_connection_that_breaks_in_the_stream(server, log):
    body = json.dumps({"inputs": ["the cat"], "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(request(body, "/api/runs/translator/predict"))
        connection.recv(10)
    assert log.wait_for_one()["status"] == 200
    assert httpx.get(f"{server.url}/health").status_code == 200


# --- files


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\x00.png", 'x"; rm -rf /', "é" * 300, ""])
def test_names_of_files(server, log, name):
    files = {"files": (name, b"not an image", "image/png")}
    answer = httpx.post(f"{server.url}/api/runs/judge/predict-file", files=files)
    assert answer.status_code == 422
    assert "passwd" not in answer.text
    assert log.wait_for_one()["status"] == 422


def png(width: int, height: int, data: bytes, *extra: bytes) -> bytes:
    """Return a PNG with any size in its header and any data."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", header), *(chunk(b"zTXt", content) for content in extra)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [*parts, chunk(b"IDAT", zlib.compress(data)), chunk(b"IEND", b"")]
    )


def saved(format_name: str, width: int, height: int, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (width, height)).save(buffer, format_name, **options)
    return buffer.getvalue()


def many_frames() -> bytes:
    frames = [Image.new("L", (8, 8), n % 256) for n in range(300)]
    return saved("GIF", 8, 8, save_all=True, append_images=frames)


def gif_with_a_large_frame() -> bytes:
    """Return a GIF of 8 x 8 pixels whose frame says that it has 60,000 x 60,000."""
    data = bytearray(saved("GIF", 8, 8))
    frame = data.index(b",", 13)
    data[frame + 5 : frame + 9] = struct.pack("<HH", 60_000, 60_000)
    return bytes(data)


LARGE_TEXT = b"k\0\0" + zlib.compress(b"x" * 30_000_000, 1)
BOMBS = {
    "PNG of 2 gigapixels": (lambda: png(50_000, 40_000, b"\0" * 9), 413),
    "PNG with 30 MB of text": (
        lambda: png(1, 1, b"\0" * 4, b"k\0\0" + zlib.compress(b"x" * 30_000_000)),
        422,
    ),
    "PNG with too much data": (lambda: png(2, 2, b"\0" * 20_000_000), 200),
    "PNG with too little data": (lambda: png(2000, 2000, b"\0"), 400),
    "GIF of 300 frames": (many_frames, 200),
    "GIF with a large frame": (gif_with_a_large_frame, 413),
    "TIFF": (lambda: saved("TIFF", 1100, 1100, compression="tiff_deflate"), 413),
    "WebP": (lambda: saved("WEBP", 1100, 1100), 413),
    "PostScript": (lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", 422),
    "an icon": (lambda: saved("ICO", 16, 16), 422),
    "a zip file": (lambda: b"PK\x03\x04" + b"\0" * 100, 422),
}


@pytest.mark.parametrize("name", BOMBS)
def test_decompression_bombs(name):
    """A picture is refused by its header, or takes no more memory than its pixels."""
    make, status = BOMBS[name]
    if status == 200:
        assert read_pixels(make(), 1_000_000, "image").size < 1000
        return
    with pytest.raises(Exception, match="image: ") as caught:
        read_pixels(make(), 1_000_000 if status == 413 else 10_000_000, "image")
    error = caught.value
    assert (error.status if isinstance(error, ApiError) else 400) == status
    assert not any(leak in str(error) for leak in LEAKS)
