"""A live server on a free port of this machine, with four tiny runs."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

import regard
from regard.serve.application import build_app
from regard.serve.limits import Limits
from regard.serve.listening import open_socket, server_config
from regard.serve.protocol import TimedProtocol

LIMITS = Limits(max_inputs=8, max_characters=2000, max_body_bytes=200_000)
TINY_RNN = {"kind": "rnnsearch", "dim": 8, "hidden_dim": 8}
TINY_GPT = {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1, "max_positions": 256}
GREEDY = {"decode": {"kind": "greedy", "max_length": 8}}
TEXTS = ["the cat sat", "the dog ran", "a bird sang", "the fish swam"]


def fit_runs(folder: Path) -> dict[str, regard.Run]:
    """Train a translator, a language model, a conversation and a classifier for two steps."""
    data = {
        "translator": ("translate", [{"source": t, "target": t[::-1]} for t in TEXTS], TINY_RNN),
        "writer": ("language", [{"text": t} for t in TEXTS], TINY_GPT),
        "talker": ("chat", [{"turns": [t, t]} for t in TEXTS], TINY_GPT),
        "judge": (
            "classify",
            [{"text": t, "label": str(n % 2)} for n, t in enumerate(TEXTS)],
            {"kind": "birnn", "dim": 8, "hidden_dim": 8},
        ),
    }
    runs = {}
    for name, (task, records, model) in data.items():
        settings = {} if task == "classify" else dict(GREEDY)
        if task == "language":
            settings["train"] = {"context_length": 8, "examples_per_batch": 2}
            settings["text"] = {"kind": "characters"}
        runs[name] = regard.fit(
            task, records, model, steps=2, folder=folder / name, settings=settings, progress=False
        )
    return runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, regard.Run]:
    return fit_runs(tmp_path_factory.mktemp("served"))


class LiveServer:
    """A server in a thread of this process."""

    def __init__(
        self,
        runs: dict[str, regard.Run],
        key: str | None = None,
        limits: Limits = LIMITS,
        protocol: type[TimedProtocol] = TimedProtocol,
    ):
        app = build_app(runs, limits=limits, key=key, languages={"translator": ("en", "de")})
        listener = open_socket("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self.server = uvicorn.Server(server_config(app, protocol=protocol))
        self.thread = threading.Thread(target=self.server.run, args=[[listener]], daemon=True)
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "LiveServer":
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture(scope="session")
def server(runs: dict[str, regard.Run]) -> Iterator[LiveServer]:
    with LiveServer(runs) as live:
        yield live


@pytest.fixture(scope="session")
def locked_server(runs: dict[str, regard.Run]) -> Iterator[LiveServer]:
    """A server that needs the key "secret"."""
    with LiveServer(runs, key="secret") as live:
        yield live
