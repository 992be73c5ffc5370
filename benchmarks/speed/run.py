"""Measure regard beside other engines, and write a table and a JSON file.

    make bench                          all cases
    make bench CASE=A.greedy32.float32  one case, or all whose name begins so

Each engine is a process of its own that stays loaded. In each round, every engine does the same
work once, in turn, so that the load of the machine touches all of them. The first round is a
warm-up. The ratio is that of the medians: regard over the other engine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import IO, cast

from benchmarks.speed.cases import CASES, OURS, Case

FOLDER = Path(__file__).parent
WORKERS = {
    OURS: "ours.py",
    "ctranslate2": "of_ctranslate2.py",
    "transformers": "of_transformers.py",
    "torch": "of_torch.py",
    "joeynmt": "of_joeynmt.py",
}
OWN_ENVIRONMENTS = ("joeynmt",)  # in peers-joeynmt


class Worker:
    """A process that does the work of one engine, once for each line that it reads."""

    def __init__(self, engine: str, options: dict[str, object], peers: Path, files: Path):
        name = engine.split()[0]
        python = python_of(name, peers)
        command = [python, str(FOLDER / "workers" / WORKERS[name]), json.dumps(options), str(files)]
        self.engine = engine
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.input, self.output = cast("IO[str]", self.process.stdin), self.process.stdout
        self.read()  # a line says that the model is loaded

    def read(self) -> dict[str, float]:
        line = cast("IO[str]", self.output).readline()
        if not line:
            sys.exit(f"{self.engine}: its process has ended; see the messages above")
        return json.loads(line)

    def work(self) -> float:
        """Return the units of work in a second."""
        self.input.write("work\n")
        self.input.flush()
        result = self.read()
        return result["amount"] / result["seconds"]

    def close(self) -> None:
        self.input.close()
        self.process.wait()


def python_of(engine: str, peers: Path) -> str:
    """Return the interpreter of an engine's environment."""
    if engine == OURS:
        return sys.executable
    folder = peers.with_name(f"{peers.name}-{engine}") if engine in OWN_ENVIRONMENTS else peers
    python = folder / "bin" / "python"
    if not python.exists():
        sys.exit(f"{engine}: there is no {python}; `make bench` installs it")
    return str(python)


def measure(case: Case, peers: Path, files: Path) -> dict[str, list[float]]:
    """Return the speeds of all engines, by round."""
    workers = {
        engine: Worker(engine, {**case.options, **own}, peers, files)
        for engine, own in case.engines.items()
    }
    speeds: dict[str, list[float]] = {engine: [] for engine in workers}
    for number in range(case.rounds + 1):
        for engine, worker in workers.items():
            speed = worker.work()
            if number:
                speeds[engine].append(speed)
    for worker in workers.values():
        worker.close()
    return speeds


def rows_of(case: Case, speeds: dict[str, list[float]]) -> list[dict[str, object]]:
    """Return one row for each other engine."""
    ours = statistics.median(speeds[OURS])
    rows = list[dict[str, object]]()
    for engine, values in speeds.items():
        if engine == OURS:
            continue
        theirs = statistics.median(values)
        spread = {OURS: [min(speeds[OURS]), max(speeds[OURS])], engine: [min(values), max(values)]}
        row = {"case": case.name, "peer": engine, "ours": ours, "theirs": theirs}
        rows.append({**row, "ratio": ours / theirs, "unit": case.unit, "spread": spread})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="?", default="", help="name of a case, or its beginning")
    parser.add_argument("--peers", type=Path, required=True, help="environment of other engines")
    parser.add_argument("--files", type=Path, required=True, help="folder for converted models")
    parser.add_argument("--output", type=Path, default=FOLDER.parent / "results" / "speed.json")
    arguments = parser.parse_args()
    arguments.files.mkdir(parents=True, exist_ok=True)
    cases = [case for case in CASES if case.name.startswith(arguments.case)]
    if not cases:
        sys.exit(f"no case begins with {arguments.case!r}: {', '.join(c.name for c in CASES)}")
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else []
    print(f"{'case':22} {'peer':17} {'regard':>9} {'peer':>9} {'ratio':>6}  load")
    for case in cases:
        rows = rows_of(case, measure(case, arguments.peers, arguments.files))
        results = [row for row in results if row["case"] != case.name] + rows
        for row in rows:
            print(
                f"{case.name:22} {row['peer']:17} {row['ours']:9,.1f} {row['theirs']:9,.1f} "
                f"{row['ratio']:6.2f}  {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
