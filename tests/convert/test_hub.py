"""Models by name: `huggingface_hub` itself, against a small server of the hub's routes."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from regard.convert import hub, run
from regard.convert.folder import write_folder
from regard.convert.hub import find_model_folder
from regard.convert.run import import_run
from regard.models.bert import Bert
from regard.text.external import ExternalTokenizer
from regard.text.train import train_tokenizer

pytest.importorskip("huggingface_hub")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHILD = """
import sys
from regard.convert.hub import find_model_folder
from regard.errors import InputError
for name, _, revision in (word.partition("@") for word in sys.argv[1:]):
    try:
        print(find_model_folder(name, revision or None))
    except InputError as error:
        print(error)
print("torch" in sys.modules)
"""


class Hub(BaseHTTPRequestHandler):
    """GET and HEAD of one model, `someone/small`, whose files are in `files`."""

    files: ClassVar[dict[str, bytes]] = {}
    requested: ClassVar[list[str]] = []
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        status, body, headers = 404, b"{}", {"X-Error-Code": "RepoNotFound"}
        if path.startswith("/api/models/someone/small"):
            route, _, revision = path.removeprefix("/api/models/someone/small/").partition("/")
            siblings = [{"rfilename": name} for name in self.files]
            status, headers = 404, {"X-Error-Code": "RevisionNotFound"}
            if revision in ("main", COMMIT):
                known = {"id": "someone/small", "sha": COMMIT, "siblings": siblings}
                tree = [file_entry(name, data) for name, data in self.files.items()]
                status, headers = 200, {"X-Repo-Commit": COMMIT}
                body = json.dumps(tree if route == "tree" else known).encode()
        name = path.removeprefix(f"/someone/small/resolve/{COMMIT}/")
        if name in self.files:
            self.requested.append(name)
            status, body = 200, self.files[name]
            etag = hashlib.sha256(body).hexdigest()
            headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        del args


def file_entry(name: str, data: bytes) -> dict[str, str | int]:
    oid = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    return {"type": "file", "path": name, "size": len(data), "oid": oid}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small BERT, and files that must not be downloaded."""
    own = train_tokenizer("characters", ["the cat"], 20)
    tokenizer = ExternalTokenizer.from_tokenizer(own, mask=True)
    settings = {"size": tokenizer.size, "dim": 4, "heads": 2, "layers": 1}
    folder = tmp_path_factory.mktemp("hub") / "small"
    write_folder(folder, "bert", settings, Bert(**settings).state_dict(), tokenizer)
    for name in ("pytorch_model.bin", "modeling.py", "onnx.json"):
        (folder / name).write_text("never read")
    return folder


@pytest.fixture
def endpoint(model: Path) -> Iterator[str]:
    Hub.files = {path.name: path.read_bytes() for path in model.iterdir()}
    Hub.requested = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def find_in_child(cache: Path, *names: str, **environment: str) -> list[str]:
    """Return what a new process finds: it reads the environment when it starts."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *names],
        env={**os.environ, "HF_HOME": str(cache), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        | {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "0", **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=cache,
    )
    assert done.returncode == 0, done.stderr
    *lines, has_torch = done.stdout.splitlines()
    assert has_torch == "False"
    return lines


def test_a_name_is_downloaded_once_and_then_found_offline(endpoint, model, tmp_path):
    names = ("someone/small", f"someone/small@{COMMIT}", "someone/small@v9", "someone/none")
    folder, again, *errors = find_in_child(tmp_path, *names, HF_ENDPOINT=endpoint)
    assert folder == again
    no_model = "there is no such folder, and no such public model on the hub"
    assert errors == [
        f"someone/small: {no_model} at revision 'v9'; check the name",
        f"someone/none: {no_model}; check the name",
    ]
    expected = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert {path.name for path in Path(folder).iterdir()} == set(Hub.requested) == expected
    assert (Path(folder) / "config.json").read_bytes() == (model / "config.json").read_bytes()
    nowhere = "http://127.0.0.1:9"
    offline = find_in_child(tmp_path, names[0], names[3], HF_ENDPOINT=nowhere, HF_HUB_OFFLINE="1")
    assert offline[0] == folder
    assert offline[1].startswith("someone/none: there is no such folder, and the hub cannot be re")
    assert offline[1].endswith(
        "run `hf download someone/none --local-dir DIR`, copy DIR here and give its path"
    )
    imported = import_run(folder, tmp_path / "run")
    assert imported.settings.model.dim == 4


def test_names_and_folders(model, tmp_path, monkeypatch):
    assert find_model_folder(model) == model
    with pytest.raises(ValueError, match="small: is a folder here; a revision is for a name"):
        find_model_folder(model, "main")
    with pytest.raises(ValueError, match="none: there is no such folder; give one"):
        find_model_folder(tmp_path / "none")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"a/b: there is no such folder; .* 'regard\[hub\]'"):
        find_model_folder("a/b")


def test_a_run_is_imported_by_name(model, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "download_model", lambda *name: model if name == ("a/b", "v1") else "")
    assert run.import_run("a/b", tmp_path / "run", revision="v1").settings.model.kind == "bert"
