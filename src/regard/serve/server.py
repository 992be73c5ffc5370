"""Run the server: one process, or several that share a port."""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import uvicorn

from regard.errors import InputError
from regard.run import Run
from regard.serve.application import LOCAL_HOSTS, build_app
from regard.serve.gate import Gate
from regard.serve.listening import open_socket, server_config
from regard.serve.served import run_name
from regard.serve.workers import end_with_parent, run_workers
from regard.tasks.engine_choice import EngineName

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000
OPTIONS_VARIABLE = "REGARD_SERVE"  # how worker processes receive their options


def serve_runs(
    runs: Mapping[str, Run],
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    key: str | None = None,
    allow_hosts: Sequence[str] = (),
    languages: Mapping[str, tuple[str, str]] | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve runs of this process until it is interrupted; call `on_start` when they are ready."""
    set_up_log()
    app = build_app(runs, key=key, hosts=accepted_hosts(host, allow_hosts), languages=languages)
    with open_socket(host, port) as listener:
        on_start()
        uvicorn.Server(server_config(app)).run([listener])


def serve_folders(
    folders: Sequence[Path],
    *,
    host: str,
    port: int,
    key: str | None,
    workers: int,
    allow_hosts: Sequence[str],
    languages: Mapping[str, tuple[str, str]],
    on_start: Callable[[], None],
    engine: EngineName = "built-in",
    device: str = "auto",
) -> None:
    """Serve the runs in folders, with several processes if asked; a dead one is replaced."""
    names = [run_name(folder) for folder in folders]
    for number, name in enumerate(names):
        if name in names[:number]:
            first = folders[names.index(name)]
            raise InputError(
                f"{first} and {folders[number]}: two runs have the same name, {name}; "
                "rename one of the folders"
            )
    if workers == 1:
        runs = [Run.load(folder, engine=engine, device=device) for folder in folders]
        serve_runs(
            dict(zip(names, runs, strict=True)),
            host=host,
            port=port,
            key=key,
            allow_hosts=allow_hosts,
            languages=languages,
            on_start=on_start,
        )
        return
    for folder in folders:
        Run.load(
            folder, engine=engine, device=device
        )  # a broken run is an error here, not in every worker
    options = {
        "folders": [str(folder) for folder in folders],
        "host": host,
        "key": key,
        "allow_hosts": list(allow_hosts),
        "languages": {name: list(pair) for name, pair in languages.items()},
        "engine": engine,
        "device": device,
    }
    os.environ[OPTIONS_VARIABLE] = json.dumps(options)
    set_up_log()
    with open_socket(host, port) as listener:
        on_start()
        config = server_config("regard.serve.server:build_worker_app", workers=workers)
        run_workers(config, [listener])


def build_worker_app() -> Gate:
    """Return the application of a worker process, from the options of its parent."""
    import torch

    torch.set_num_threads(1)  # there is a process for each core
    end_with_parent()
    set_up_log()
    options = json.loads(os.environ[OPTIONS_VARIABLE])
    runs = {
        run_name(folder): Run.load(folder, engine=options["engine"], device=options["device"])
        for folder in options["folders"]
    }
    languages = {name: (pair[0], pair[1]) for name, pair in options["languages"].items()}
    hosts = accepted_hosts(options["host"], options["allow_hosts"])
    return build_app(runs, key=options["key"], hosts=hosts, languages=languages)


def accepted_hosts(host: str, allow_hosts: Sequence[str]) -> frozenset[str] | None:
    """Return the names that requests may call the server by; None: any."""
    if "*" in allow_hosts:
        return None
    return LOCAL_HOSTS | {host, *allow_hosts}


def set_up_log() -> None:
    """Send the log of requests to standard error: a line of JSON each, without users' texts."""
    handler = logging.StreamHandler(sys.stderr)
    log = logging.getLogger("regard.serve")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
