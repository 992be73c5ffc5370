"""Fuzz the HTTP server by its OpenAPI schema: no answer has a status of 500 or more.

    python benchmarks/api_fuzz.py [--cases 1000] [--only REGEX] [--pass any|answered]
        [--processes 1] [--seed 1] [--schemathesis st]

It needs schemathesis (`pip install schemathesis`, perhaps in an environment of its own; its command
is `st`). Four tiny runs are trained and served by `regard serve`. schemathesis then sends `--cases`
requests to each operation, valid and invalid, and compares statuses and content types with the
schema. Few of these reach a model, so `--cases` more follow for each operation that asks one, with
any texts in bodies of the right form. Tables count the requests and the statuses of their answers.
With `--processes`, that many of schemathesis share the operations. It keeps no database of earlier
requests, whose comparison takes most of its time, and does not shrink failures.

Exits with 1 after a failure, if an operation with parameters had fewer than `--cases` requests or
none that is valid or invalid, if no model has answered, if the server has died, or if its log has a
traceback.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

import regard

TEXTS = ["the cat sat", "the dog ran", "a bird sang", "the fish swam"]
GREEDY = {"decode": {"kind": "greedy", "max_length": 8}}
TINY_GPT = {"kind": "gpt2", "dim": 8, "heads": 2, "layers": 1, "max_positions": 256}
TINY_RNN = {"kind": "rnnsearch", "dim": 8, "hidden_dim": 8}
TINY_BERT = {"kind": "bert", "dim": 8, "heads": 2, "layers": 1}
TEXT = {"type": "string", "maxLength": 60}
ONE_INPUT = {"input": TEXT}
# bodies that a run answers: all their properties are required
ANSWERED_BODIES = {
    "PredictBody": {"inputs": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 4}},
    "AttentionBody": {**ONE_INPUT, "format": {"enum": ["json", "viewer", "npz", "html"]}},
    "OneInputBody": ONE_INPUT,
    "CounterfactualBody": {**ONE_INPUT, "ablate": {"enum": [["L1"]]}},
    "CompletionBody": {
        "model": {"enum": ["writer"]},
        "prompt": TEXT,
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": 8},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "stream": {"type": "boolean"},
    },
    "ChatBody": {
        "model": {"enum": ["talker"]},
        "messages": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "properties": {"role": {"enum": ["user"]}, "content": TEXT},
                "required": ["role", "content"],
            },
        },
        "stream": {"type": "boolean"},
    },
    "EmbeddingBody": {"model": {"enum": ["judge"]}, "input": TEXT},
}
TRANSLATE_BODY = {"q": TEXT, "source": {"enum": ["en"]}, "target": {"enum": ["de"]}}
ANSWERED_PATHS = "/(predict|attention|details|counterfactual|completions|embeddings|translate)$"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"
RUNS = {
    "translator": (
        "translate",
        [{"source": text, "target": text[::-1]} for text in TEXTS],
        TINY_RNN,
        GREEDY,
    ),
    "writer": (
        "language",
        [{"text": text} for text in TEXTS],
        TINY_GPT,
        {
            **GREEDY,
            "text": {"kind": "characters"},
            "train": {"context_length": 8, "examples_per_batch": 2},
        },
    ),
    "talker": ("chat", [{"turns": [text, text]} for text in TEXTS], TINY_GPT, GREEDY),
    "judge": (
        "classify",
        [{"text": text, "label": str(n % 2)} for n, text in enumerate(TEXTS)],
        TINY_BERT,
        {},
    ),
}


def train_runs(folder: Path) -> list[Path]:
    """Train each run for two steps."""
    for name, (task, records, model, settings) in RUNS.items():
        regard.fit(
            task,
            records,
            model,
            steps=2,
            folder=folder / name,
            settings=settings,
            progress=False,
        )
    return [folder / name for name in RUNS]


def start_server(folders: list[Path], log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start `regard serve` on a free port, and wait until it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "regard", "serve", *map(str, folders), "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--languages", "translator:en-de"],
        stdout=subprocess.DEVNULL,
        stderr=log.open("wb"),
    )
    url = f"http://127.0.0.1:{port}"
    while not answers(url):
        if process.poll() is not None:
            raise SystemExit(log.read_text())
        time.sleep(0.2)
    return process, url


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=10).status_code == 200
    except httpx.HTTPError:
        return False


def closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def answered_schema(url: str, path: Path) -> Path:
    """Write the schema of requests that a run answers, whatever their texts."""
    schema = httpx.get(f"{url}/openapi.json", timeout=60).json()
    for name, properties in ANSWERED_BODIES.items():
        schema["components"]["schemas"][name] = closed_object(properties)
    translate = schema["paths"]["/translate"]["post"]
    del translate["parameters"]
    content = {"application/json": {"schema": closed_object(TRANSLATE_BODY)}}
    translate["requestBody"] = {"required": True, "content": content}
    path.write_text(json.dumps(schema))
    return path


def fuzz_paths(
    fuzzer: str,
    schema: str,
    reports: list[Path],
    paths: list[str],
    **options: Any,
) -> int:
    """Share paths among processes of schemathesis, one for each report; return the worst status."""
    shares = [paths[number :: len(reports)] for number in range(len(reports))]
    with ThreadPoolExecutor(len(reports)) as pool:
        codes = [
            pool.submit(fuzz, fuzzer, schema, report, share, **options)
            for report, share in zip(reports, shares, strict=True)
            if share
        ]
    return max(code.result() for code in codes)


def fuzz(
    fuzzer: str,
    schema: str,
    report: Path,
    paths: list[str],
    *,
    options: list[str],
    cases: int,
    seed: int,
) -> int:
    """Run schemathesis, which reports all its requests; return its exit status."""
    pattern = f"^({'|'.join(map(re.escape, paths))})$"
    command = [fuzzer, "run", schema, "--checks", CHECKS, *options]
    command += ["--include-path-regex", pattern]
    command += ["--max-examples", str(cases)]
    command += ["--seed", str(seed), "--continue-on-failure", "--workers", "1"]
    command += ["--suppress-health-check", "all", "--no-color", "--request-timeout", "60"]
    command += ["--generation-database", "none", "--no-shrink"]
    command += ["--report", "ndjson", "--report-ndjson-path", str(report)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command,
        check=False,
        env=environment,
        cwd=report.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, flush=True)
    return done.returncode


def reported_requests(report: Path) -> Iterator[tuple[str, str, str]]:
    """Yield operation, mode and status of each request, such as ("GET /health", "positive", "2xx").

    A request without an answer has the status "none".
    """
    with report.open(encoding="utf-8") as lines:
        for line in lines:
            recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder")
            for name, case in (recorder or {"cases": {}})["cases"].items():
                mode = case["value"]["meta"]["generation"]["mode"]
                response = recorder["interactions"].get(name, {}).get("response")
                status = f"{response['status_code'] // 100}xx" if response else "none"
                yield recorder["label"], mode, status


def operations_with_parameters(url: str, only: str) -> dict[str, bool]:
    """Return the operations of paths, and whether a request of each can vary."""
    paths = httpx.get(f"{url}/openapi.json", timeout=60).json()["paths"]
    return {
        f"{method.upper()} {path}": bool(operation.get("parameters") or "requestBody" in operation)
        for path, operations in paths.items()
        if re.search(only, path)
        for method, operation in operations.items()
    }


def print_table(
    reports: list[Path], operations: dict[str, bool], cases: int, modes: list[str]
) -> bool:
    """Print the requests of each operation; return whether there were enough of all modes."""
    columns = ["positive", "negative", "2xx", "3xx", "4xx", "5xx", "none"]
    counts = {operation: Counter[str]() for operation in operations}
    for report in reports:
        for operation, mode, status in reported_requests(report):
            counts[operation].update([mode, status])
    print(f"{'operation':38}{'requests':>9}" + "".join(f"{name:>9}" for name in columns))
    is_enough = True
    for operation, count in sorted(counts.items()):
        total = count["positive"] + count["negative"]
        is_answered = "negative" in modes or count["2xx"] > 0
        note = ""
        if not operations[operation]:
            note = "  no parameters, no body: only methods can vary"
        elif total < cases or not all(count[mode] for mode in modes) or not is_answered:
            note, is_enough = f"  fewer than {cases}, only of one mode, or never answered", False
        numbers = "".join(f"{count[name]:9}" for name in columns)
        print(f"{operation:38}{total:9}{numbers}{note}")
    return is_enough


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000, help="Requests for each operation.")
    parser.add_argument("--only", default="", help="Regular expression of the paths to test.")
    parser.add_argument("--pass", dest="only_pass", choices=["any", "answered"])
    parser.add_argument("--processes", type=int, default=1, help="Of schemathesis.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schemathesis", default="st", help="Command of schemathesis.")
    options = parser.parse_args()
    fuzzer = shutil.which(options.schemathesis)
    if fuzzer is None:
        raise SystemExit(f"{options.schemathesis}: no such command; pip install schemathesis")
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name), Path(name, "log")
        process, url = start_server(train_runs(folder), log)
        try:
            is_good = run_passes(str(Path(fuzzer).absolute()), url, folder, options)
            is_alive = answers(url)
        finally:
            process.terminate()
            process.wait()
        lines = log.read_text().splitlines()
    tracebacks = sum("Traceback" in line for line in lines)
    print(f"{len(lines):,} lines in the log, {tracebacks} tracebacks; alive: {is_alive}")
    raise SystemExit(int(not is_good or tracebacks > 0 or not is_alive))


def run_passes(fuzzer: str, url: str, folder: Path, options: argparse.Namespace) -> bool:
    """Send any requests, then those that models answer; return whether all went well."""
    schema = answered_schema(url, folder / "answered.json")
    any_requests = ["--mode", "all", "--phases", "coverage,fuzzing"]
    answered = ["--mode", "positive", "--phases", "fuzzing", "--url", url]
    passes = {
        "any": (f"{url}/openapi.json", any_requests, options.only, ["positive", "negative"]),
        "answered": (str(schema), answered, ANSWERED_PATHS, ["positive"]),
    }
    is_good = True
    for name, (address, arguments, pattern, modes) in passes.items():
        if options.only_pass not in (None, name):
            continue
        reports = [folder / f"{name}-{n}.ndjson" for n in range(options.processes)]
        operations = operations_with_parameters(url, pattern)
        paths = list(dict.fromkeys(operation.split(" ", 1)[1] for operation in operations))
        code = fuzz_paths(
            fuzzer,
            address,
            reports,
            paths,
            options=arguments,
            cases=options.cases,
            seed=options.seed,
        )
        made = [report for report in reports if report.exists()]
        is_enough = print_table(made, operations, options.cases, modes)
        is_good = is_good and is_enough and code == 0
    return is_good


if __name__ == "__main__":
    main()
