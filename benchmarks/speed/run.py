"""Measure regard beside other engines, and write a table and a JSON file.

    make bench                          all cases
    make bench CASE=A.greedy32.float32  one case, or all whose name begins so

Each engine is a process of its own that stays loaded; in the cases F and H it is a new process
each time. In each round, every engine does the same work once, in turn, so that the load of the
machine touches all of them. The first round is a warm-up. The ratio is that of the medians: regard
over the other engine. A star marks the best of the others.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.speed.cases import CASES, OURS, UNITS_TO_LOWER, Case
from benchmarks.speed.processes import build_process

# After its work, the threads of an engine wait actively for more, on the cores of the next engine.
SECONDS_OF_REST = 0.05

Speeds = Mapping[str, list[float]]
Row = dict[str, object]


def measure(case: Case, peers: Path, files: Path) -> Speeds:
    """Return the results of all engines, by round."""
    workers = {
        engine: build_process(engine, {**case.options, **own}, peers, files)
        for engine, own in case.engines.items()
    }
    speeds: dict[str, list[float]] = {engine: [] for engine in workers}
    for number in range(case.rounds + 1):
        for engine, worker in workers.items():
            time.sleep(SECONDS_OF_REST)
            speed = worker.work(case.unit)
            if number:
                speeds[engine].append(speed)
    for worker in workers.values():
        worker.close()
    return speeds


def is_ours(engine: str) -> bool:
    return engine.split()[0] == OURS


def row_name(case: Case, engine: str) -> str:
    """Return the name of the rows of one of our engines."""
    return ".".join([case.name, *engine.split()[1:]])


def rows_of(case: Case, speeds: Speeds) -> list[Row]:
    """Return one row for each of our engines and each other engine."""
    rows = list[Row]()
    for own in filter(is_ours, speeds):
        ours = statistics.median(speeds[own])
        for engine, values in speeds.items():
            if is_ours(engine):
                continue
            theirs = statistics.median(values)
            spread = {own: [min(speeds[own]), max(speeds[own])], engine: [min(values), max(values)]}
            row = {"case": row_name(case, own), "peer": engine, "ours": ours, "theirs": theirs}
            rows.append({**row, "ratio": ours / theirs, "unit": case.unit, "spread": spread})
    return rows


def print_rows(case: Case, speeds: Speeds) -> None:
    """Print the rows of a case, with a star at the best of the other engines."""
    others = {e: statistics.median(values) for e, values in speeds.items() if not is_ours(e)}
    best = (min if case.unit in UNITS_TO_LOWER else max)(others, key=lambda engine: others[engine])
    for row in rows_of(case, speeds):
        print(
            f"{row['case']:25} {row['peer']:16}{'*' if row['peer'] == best else ' '} "
            f"{row['ours']:9,.2f} {row['theirs']:9,.2f} {row['unit']:8} {row['ratio']:6.2f}",
            flush=True,
        )


def print_load(moment: str) -> None:
    print(f"load of the machine at the {moment}: {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("case", nargs="?", default="", help="name of a case, or its beginning")
    parser.add_argument("--peers", type=Path, required=True, help="environment of other engines")
    parser.add_argument("--files", type=Path, required=True, help="folder for models and runs")
    parser.add_argument("--rounds", type=int, help="rounds of each case; default: its own number")
    output = Path(__file__).parents[1] / "results" / "speed.json"
    parser.add_argument("--output", type=Path, default=output)
    arguments = parser.parse_args()
    arguments.files.mkdir(parents=True, exist_ok=True)
    rounds = {} if arguments.rounds is None else {"rounds": arguments.rounds}
    cases = [case._replace(**rounds) for case in CASES if case.name.startswith(arguments.case)]
    if not cases:
        sys.exit(f"no case begins with {arguments.case!r}: {', '.join(c.name for c in CASES)}")
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else []
    print_load("start")
    print(f"{'case':25} {'peer':17} {'regard':>9} {'peer':>9} {'unit':8} {'ratio':>6}", flush=True)
    start = time.monotonic()
    for case in cases:
        speeds = measure(case, arguments.peers, arguments.files)
        names = {row_name(case, engine) for engine in case.engines if is_ours(engine)}
        kept = [row for row in results if row["case"] not in names]
        results = kept + rows_of(case, speeds)
        print_rows(case, speeds)
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    print_load("end")
    print(f"measured in {(time.monotonic() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
