"""Load on the HTTP server over loopback: latency, throughput, batching and memory.

    python benchmarks/load.py [--clients 64] [--seconds 60] [--requests 20000] [--steps 100]

Two runs are trained shortly and served: dates (the model of `regard demo`) and a translator (a
transformer on reordered sentences). Clients send one input each, again and again, for `--seconds`.
Each run is served with batches and one input at a time, in turns, because other programs may use
the machine. The processor time of the server for a request is printed too: it depends less on them.
Then `--requests` more are sent after a warm-up, and the memory of the server is compared. Exits
with 1 if a status is neither 200 nor 429, if batching takes more than a third of the processor time
on the translator, or if memory grows by 5 % or more.
"""

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
import uvicorn

from regard.cli.demo import demo_settings
from regard.run import Run
from regard.serve.application import build_app
from regard.serve.limits import Limits
from regard.serve.listening import open_socket, server_config
from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

WARM_UP_REQUESTS = 40_000  # the kernels prepare code for new sizes of a batch, and keep much of it
MIN_BATCH_GAIN = 3.0
MAX_MEMORY_GROWTH = 0.05
TURNS = 3  # of each kind of server, one after the other
INPUTS = 500


class LoadResult(NamedTuple):
    """Statuses and latencies, in milliseconds, of the requests of all clients."""

    statuses: Counter[int]
    latencies: list[float]
    seconds: float

    @property
    def throughput(self) -> float:
        return self.statuses[200] / self.seconds

    def percentile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def __str__(self) -> str:
        p50, p95, p99 = (self.percentile(share) for share in (0.5, 0.95, 0.99))
        return (
            f"{self.throughput:7.1f} requests/s   p50 {p50:6.1f}   p95 {p95:6.1f}   "
            f"p99 {p99:6.1f} ms   statuses {dict(self.statuses)}"
        )


def train(folder: Path, steps: int) -> dict[str, list[str]]:
    """Train both runs; return inputs for each."""
    translator = {
        "task": "translate",
        "data": {"kind": "reorder", "size": 2000, "held_out": INPUTS},
        "text": {"kind": "words"},
        "model": {"kind": "transformer", "dim": 64, "heads": 4, "layers": 2},
        "train": {"steps": steps, "examples_per_batch": 32},
    }
    inputs = {}
    settings = {"dates": demo_settings(steps, 1), "translator": resolve_settings(translator)}
    for name, run_settings in settings.items():
        trainer = Trainer(run_settings, folder / name, lambda _: None)
        list(trainer)
        corpus = trainer.run.corpus()
        split = "test" if "test" in corpus.splits else "train"
        records = [record for record, _ in zip(corpus.read(split), range(INPUTS), strict=False)]
        inputs[name] = [record["source"] for record in records]
    return inputs


def serve(folder: Path, max_batch: int) -> None:
    """Serve one run in this process; print the port."""
    torch.set_num_threads(1)
    app = build_app({folder.name: Run.load(folder)}, limits=Limits(max_batch=max_batch))
    with open_socket("127.0.0.1", 0) as listener:
        print(listener.getsockname()[1], flush=True)
        uvicorn.Server(server_config(app)).run([listener])


class Server:
    """A server in a process of its own."""

    def __init__(self, folder: Path, max_batch: int):
        self.name = folder.name
        command = [sys.executable, __file__, "--serve", str(folder), "--max-batch", str(max_batch)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline() if self.process.stdout else 0)

    def memory(self) -> int:
        """Return the resident memory of the process, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+)", status)
        return 1024 * int(match[1]) if match else 0

    def processor_seconds(self) -> float:
        """Return the time that the process has used, in all threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


async def run_client(
    server: Server, inputs: list[str], start: int, is_over: Callable[[], bool], result: LoadResult
) -> None:
    """Send requests on one connection until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    number = start
    while not is_over():
        body = json.dumps({"inputs": [inputs[number % len(inputs)]]}).encode()
        head = f"POST /api/runs/{server.name}/predict HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        begin = time.perf_counter()
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer)
        await reader.readexactly(int(length[1]) if length else 0)
        result.latencies.append(1000 * (time.perf_counter() - begin))
        result.statuses[int(answer.split()[1])] += 1
        number += 1
    writer.close()
    await writer.wait_closed()


def apply_load(
    server: Server,
    inputs: list[str],
    clients: int,
    *,
    seconds: float = float("inf"),
    requests: float = float("inf"),
) -> LoadResult:
    """Let clients send requests for a time, or up to a number."""
    statuses, latencies = Counter[int](), list[float]()
    result = LoadResult(statuses, latencies, 0.0)
    begin = time.perf_counter()

    def is_over() -> bool:
        return time.perf_counter() - begin >= seconds or statuses.total() >= requests

    async def run_clients() -> None:
        await asyncio.gather(
            *(run_client(server, inputs, 7 * n, is_over, result) for n in range(clients))
        )

    asyncio.run(run_clients())
    return result._replace(seconds=time.perf_counter() - begin)


def measure(folder: Path, inputs: list[str], options: argparse.Namespace) -> bool:
    """Print the figures of one run; return whether they are good."""
    print(f"\n{folder.name}")
    answers = Counter[int]()
    seconds, processor_seconds = defaultdict[int, float](float), defaultdict[int, float](float)
    is_good = True
    servers = {size: Server(folder, size) for size in (Limits().max_batch, 1)}
    for _ in range(TURNS):
        for size, server in servers.items():
            begin = server.processor_seconds()
            result = apply_load(server, inputs, options.clients, seconds=options.seconds / TURNS)
            processor_seconds[size] += server.processor_seconds() - begin
            answers[size] += result.statuses[200]
            seconds[size] += result.seconds
            is_good &= set(result.statuses) <= {200, 429}
            print(f"  batches of up to {size:2}:  {result}", flush=True)
    batched, single = (answers[size] / seconds[size] for size in servers)
    batched_cost, single_cost = (1000 * processor_seconds[n] / answers[n] for n in servers)
    print(f"  batches are {batched / single:.2f} times as fast as one input at a time")
    print(f"  processor time of a request: {batched_cost:.2f} ms, {single_cost:.2f} ms alone")
    server = servers[Limits().max_batch]
    apply_load(server, inputs, options.clients, requests=WARM_UP_REQUESTS)
    before = server.memory()
    result = apply_load(server, inputs, options.clients, requests=options.requests)
    growth = server.memory() / before - 1
    count = result.statuses.total()
    print(f"  memory: {before / 1e6:.0f} MB, {growth:+.2%} after {count:,} more requests")
    for other in servers.values():
        other.stop()
    is_fast = folder.name != "translator" or single_cost / batched_cost >= MIN_BATCH_GAIN
    return is_good and is_fast and growth < MAX_MEMORY_GROWTH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60, help="For each kind of server.")
    parser.add_argument("--requests", type=int, default=20_000, help="Of the memory test.")
    parser.add_argument("--steps", type=int, default=100, help="Of the trainings.")
    parser.add_argument("--run", choices=["dates", "translator"], help="Default: both.")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--max-batch", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.max_batch)
        return
    with tempfile.TemporaryDirectory() as folder:
        inputs = train(Path(folder), options.steps)
        results = [
            measure(Path(folder, name), texts, options)
            for name, texts in inputs.items()
            if options.run in (None, name)
        ]
    raise SystemExit(int(not all(results)))


if __name__ == "__main__":
    main()
