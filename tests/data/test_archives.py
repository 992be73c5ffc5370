"""Archives of publishers, fetched from a local server and converted to our files."""

import gzip
import io
import json
import struct
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from regard.data import archives
from regard.data.download import RemoteFile, fetch_file
from regard.data.formats.class_folders import IMAGE_CLASS_DATASETS
from regard.data.formats.image_files import IMAGE_DATASETS
from regard.data.formats.summaries import SUMMARY_DATASETS
from regard.data.public.dialogues import DIALOGUE_DATASETS
from regard.data.public.texts import TEXT_DATASETS


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        del args


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server of the files in tmp_path/served."""
    for name in ("REGARD_MIRROR", "http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "served").mkdir()
    handler = partial(QuietHandler, directory=str(tmp_path / "served"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def tar_bytes(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def zip_bytes(files: dict[str, bytes], **options: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as target:
        for name, data in files.items():
            target.writestr(name, data)
    return buffer.getvalue()


REVIEWS = {
    "aclImdb/train/pos/5_9.txt": "Größe",
    "aclImdb/train/neg/10_2.txt": "dull<br />film ",
    "aclImdb/train/neg/5_1.txt": "bad",
    "aclImdb/train/neg/6_1.txt": "not a fifth",
    "aclImdb/train/unsup/5_0.txt": "without a label",
    "aclImdb/test/pos/5_9.txt": "of the other split",
}
MAILS = {
    "AESLC-1/enron_subject_line/dev/b_2.subject": "body\r\n\n@subject\nhello\n",
    "AESLC-1/enron_subject_line/dev/a_1.subject": "other",
    "AESLC-1/enron_subject_line/test/a_1.subject": "of the other split",
}
IMAGES = struct.pack(">4B3I", 0, 0, 8, 3, 4, 2, 2) + bytes(range(16))
PNGS = {"images/B/2.png": b"two", "__MACOSX/images/B/2.png": b"x", "images/A/1.png": b"one"}


@pytest.mark.parametrize(
    ("archive", "recipe", "expected"),
    [
        (
            tar_bytes(REVIEWS),
            archives.imdb_sample("train"),
            [
                {"id": "neg/5_1", "label": 0, "rating": 1, "text": "bad"},
                {"id": "pos/5_9", "label": 1, "rating": 9, "text": "Größe"},
                {"id": "neg/10_2", "label": 0, "rating": 2, "text": "dull<br />film "},
            ],
        ),
        (
            tar_bytes(MAILS),
            archives.aeslc_mails("dev"),
            [{"id": "a_1", "raw": "other"}, {"id": "b_2", "raw": "body\n\n@subject\nhello"}],
        ),
        (b"###\n# by us\n[\n#1\n]\n", archives.without_header, b"[\n#1\n]\n"),
        (
            gzip.compress(IMAGES, mtime=0),  # workers must give the test one name
            archives.first_items(3),
            struct.pack(">4B3I", 0, 0, 8, 3, 3, 2, 2) + bytes(range(12)),
        ),
    ],
)
def test_an_archive_is_fetched_once_and_converted(archive, recipe, expected, server, tmp_path):
    if isinstance(expected, list):
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in expected]
        expected = "".join(lines).encode()
    served = tmp_path / "served" / "all.tar.gz"
    served.write_bytes(archive)
    source = RemoteFile(f"{server}/all.tar.gz", "x/file", sha256(expected).hexdigest())
    source = source._replace(recipe=recipe)
    path = fetch_file(source, tmp_path / "cache" / "file")
    assert path.read_bytes() == expected
    served.unlink()
    path.unlink()
    assert fetch_file(source, path).read_bytes() == expected  # from the archive in the cache


def test_a_mirror_has_the_converted_file(server, tmp_path, monkeypatch):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "file.gz").write_bytes(gzip.compress(b"[]\n"))
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    source = RemoteFile(
        f"{server}/none", "file.gz", sha256(b"[]\n").hexdigest(), recipe=archives.without_header
    )
    assert fetch_file(source, tmp_path / "cache" / "file").read_bytes() == b"[]\n"


def test_zips_of_the_same_images_become_the_same_file(server, tmp_path, monkeypatch):
    stored = zip_bytes(PNGS)
    packed = zip_bytes(dict(reversed(PNGS.items())), compression=zipfile.ZIP_DEFLATED)
    (tmp_path / "served" / "images.zip").write_bytes(packed)
    expected = b"".join(archives.repacked_images(tmp_path / "served" / "images.zip"))
    source = RemoteFile(
        *(f"{server}/images.zip", "images.zip", sha256(expected).hexdigest()),
        recipe=archives.repacked_images,
        is_mirror_converted=True,
    )
    path = fetch_file(source, tmp_path / "cache" / "images.zip")
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["images/A/1.png", "images/B/2.png"]
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "images.zip").write_bytes(stored)
    monkeypatch.setenv("REGARD_MIRROR", str(tmp_path / "mirror"))
    other = fetch_file(source, tmp_path / "other" / "images.zip")
    assert other.read_bytes() == path.read_bytes() == expected


@pytest.mark.parametrize("archive", [b"", b"not an archive", tar_bytes(REVIEWS)[:200]])
def test_a_damaged_archive_is_one_line_and_not_kept(archive, server, tmp_path):
    (tmp_path / "served" / "a.tar.gz").write_bytes(archive)
    source = RemoteFile(f"{server}/a.tar.gz", "x", "0" * 64, recipe=archives.imdb_sample("train"))
    with pytest.raises(ValueError, match=r"a\.tar\.gz: ") as error:
        fetch_file(source, tmp_path / "cache" / "x")
    assert "\n" not in str(error.value)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_every_public_file_has_an_address():
    groups = [group for item in TEXT_DATASETS.values() for group in item.files.values()]
    groups += [group for item in IMAGE_DATASETS.values() for group in item.files.values()]
    files = [
        *(file for group in groups for file in group),
        *(file for item in SUMMARY_DATASETS.values() for file in item.files.values()),
        *(file for item in DIALOGUE_DATASETS.values() for file in item.files.values()),
        *(file for item in IMAGE_CLASS_DATASETS.values() for file in item.values()),
    ]
    assert all(file.url.startswith("https://") for file in files)
