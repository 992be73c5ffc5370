"""Several worker processes, without a model: they die, come back, and finish what they do."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

SCRIPT = """
import asyncio, os, sys
from regard.errors import InputError
from regard.serve.gate import Gate
from regard.serve.limits import Limits
from regard.serve.listening import open_socket, server_config
from regard.serve.metrics import ServerMetrics
from regard.serve.workers import end_with_parent, run_workers

metrics = ServerMetrics()

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": message["type"] + ".complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    body = metrics.render() if scope["path"] == "/metrics" else str(os.getpid()).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})

def build():
    if sys.argv[1] == "broken":
        os._exit(7)
    end_with_parent()
    return Gate(app, Limits(), metrics)

if __name__ == "__main__":
    with open_socket("127.0.0.1", 0) as listener:
        print(listener.getsockname()[1], flush=True)
        config = server_config("workers_script:build", workers=2)
        config.timeout_worker_healthcheck = 3600  # nobody waits so long for a dead worker
        try:
            run_workers(config, [listener])
        except InputError as error:
            sys.exit(f"error: {error}")
"""


def start(folder: Path, mode: str) -> subprocess.Popen[str]:
    (folder / "workers_script.py").write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(folder / "workers_script.py"), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def server(tmp_path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with start(tmp_path, "good") as process:
        assert process.stdout is not None
        yield process, f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


def ask(url: str, path: str = "/") -> str:
    """Return the answer to a request on a new connection, which any worker may accept."""
    return httpx.get(url + path, timeout=600).text


def wait_for_workers(url: str, dead: str = "") -> set[str]:
    """Ask until two workers that live have answered."""
    workers = set[str]()
    while len(workers) < 2:
        with suppress(httpx.TransportError):  # of a worker that dies
            workers |= {ask(url)} - {dead}
    return workers


def test_a_killed_worker_comes_back_while_the_others_answer(server):
    _, url = server
    [first, second] = wait_for_workers(url)
    answers, problems, is_over = list[str](), list[str](), threading.Event()

    def send_requests() -> None:
        while not is_over.is_set():
            try:
                answers.append(ask(url))
            except httpx.TransportError as error:  # the connection of the dead worker
                problems.append(type(error).__name__)

    threads = [threading.Thread(target=send_requests) for _ in range(4)]
    for thread in threads:
        thread.start()
    os.kill(int(first), signal.SIGSTOP)  # it does not answer its parent, which asks now and then
    time.sleep(0.7)
    os.kill(int(first), signal.SIGKILL)
    workers = wait_for_workers(url, dead=first)
    is_over.set()
    for thread in threads:
        thread.join()
    assert second in workers
    assert second in answers
    assert len(problems) <= len(threads)
    assert not any("Timeout" in problem for problem in problems)
    total = sum(
        float(line.split()[-1])
        for line in ask(url, "/metrics").splitlines()
        if line.startswith("regard_requests_total{")
    )
    assert total >= len(answers)


def test_workers_finish_their_requests_at_the_end(server):
    process, url = server
    wait_for_workers(url)
    results = list[str]()
    threads = [threading.Thread(target=lambda: results.append(ask(url, "/slow"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)  # so that they are under way; later ones are refused
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert process.wait() == 0


def test_workers_that_cannot_start_end_the_server(tmp_path):
    with start(tmp_path, "broken") as process:
        output = process.communicate()[1]
    assert process.returncode == 1
    assert "error: --workers: 3 processes died before they were ready" in output
    assert output.count("worker died") == 3


def test_workers_end_with_their_parent(server):
    process, url = server
    workers = wait_for_workers(url)
    process.kill()
    process.wait()
    while any(Path(f"/proc/{pid}/stat").exists() for pid in workers):
        time.sleep(0.05)
