"""Train on two hosts, which are two launchers on this machine: do lost processes and hosts matter?

    python benchmarks/hosts.py [--steps 40]

Two `torchrun` with two processes each share one run folder. They are left alone; a process of the
second host is killed; the second host is killed, or stopped by SIGTERM, and comes back. Every
training must end with the files of `regard train --processes 4`.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from distributed import train
from kill import digests, kinds, logged_steps, print_differences, write_config

NAME, PROCESSES = "transformer", 2  # of each host
EVENTS = ("nothing", "process killed", "host killed", "host stopped")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_host(place: Path, run: str, number: int, port: int) -> "subprocess.Popen[bytes]":
    """Start `torchrun` as on one of two hosts; the first one holds the store."""
    words = ["--nnodes", "2", "--nproc-per-node", str(PROCESSES), "--max-restarts", "10"]
    words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", run]
    words += ["--rdzv-conf", f"is_host={int(number == 0)}", "--shutdown-timeout", "500"]
    words += ["-m", "--", "regard", "train", f"{NAME}.toml", "--run", run, "--threads", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *words],
        cwd=place,
        stdout=(place / f"{run}.{number}.txt").open("ab"),
        stderr=subprocess.STDOUT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
    )


def workers(host: "subprocess.Popen[bytes]") -> list[int]:
    numbers = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text().split()
    return [int(n) for n in numbers if b"regard" in Path(f"/proc/{n}/cmdline").read_bytes()]


def check_event(place: Path, event: str, steps: int, expected: dict[str, str]) -> bool:
    """Train on two hosts, of which the second one has an accident in the middle."""
    run, port = event.replace(" ", "-"), free_port()
    first, second = (start_host(place, run, number, port) for number in (0, 1))
    while event != "nothing" and logged_steps(place / run) < steps // 2:
        if first.poll() is not None or second.poll() is not None:
            sys.exit(f"{run}: a host has ended: {(place / f'{run}.0.txt').read_text()[-3000:]}")
        time.sleep(0.01)
    if event == "process killed":
        os.kill(workers(second)[-1], signal.SIGKILL)
    if event == "host killed":
        for process in [second.pid, *workers(second)]:
            os.kill(process, signal.SIGKILL)
    if event == "host stopped":
        second.send_signal(signal.SIGTERM)
    if event.startswith("host"):
        second.wait()
        second = start_host(place, run, 1, port)
    codes = first.wait(), second.wait()
    equal = not print_differences(expected, digests(place / run))
    print(f"{event}: exit codes {codes}, files {'equal' if equal else 'DIFFER'}", flush=True)
    return equal and not any(codes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_config(place, NAME, kinds()[NAME], steps)
        train(place, NAME, "alone", 2 * PROCESSES)
        expected = digests(place / "alone")
        results = [check_event(place, event, steps, expected) for event in EVENTS]
    print("all files are equal" if all(results) else "FAILED")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
