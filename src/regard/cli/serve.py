"""`regard serve`: a web page and an HTTP API for runs."""

import os
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import DeviceOption, EngineOption
from regard.errors import InputError
from regard.serve.server import DEFAULT_HOST, DEFAULT_PORT, serve_folders
from regard.tasks.engine_choice import check_engine_name

BROWSER_DELAY_SECONDS = 1.0


def serve(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all networks.")
    ] = DEFAULT_HOST,
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = DEFAULT_PORT,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            envvar="REGARD_KEY",
            help="Key that every request must send. Default: none is needed.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Number of processes; each loads all runs.", min=1, max=64)
    ] = 1,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Host name that requests may use; repeat for several; '*' for any.",
        ),
    ] = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[RUN:]SOURCE-TARGET",
            help="Languages of a run that translates, such as de-en; repeat for several runs.",
        ),
    ] = None,
    engine: EngineOption = "built-in",
    device: DeviceOption = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve runs: a web page, and an HTTP API that clients of OpenAI and LibreTranslate speak."""
    if key == "":
        raise InputError("--key: the key is empty; leave it out or give one")
    names = [folder.resolve().name for folder in folders]
    pairs = dict(parse_languages(word, names) for word in languages or [])
    address = f"http://{host}:{port}/" + (f"?key={key}" if key else "")
    os.environ.pop("REGARD_KEY", None)

    def on_start() -> None:
        print(f"{', '.join(names)}: {address} (Ctrl-C to stop)", flush=True)
        if open_page:
            threading.Timer(BROWSER_DELAY_SECONDS, open_browser, [address]).start()

    serve_folders(
        folders,
        host=host,
        port=port,
        key=key,
        workers=workers,
        allow_hosts=allow_host or [],
        languages=pairs,
        on_start=on_start,
        engine=check_engine_name(engine),
        device=device or "auto",
    )


def open_browser(address: str) -> None:
    """Open the page, or say that it cannot be opened from here."""
    if not webbrowser.open(address):
        print(f"--open: there is no browser on this machine; open {address}", file=sys.stderr)


def parse_languages(word: str, names: list[str]) -> tuple[str, tuple[str, str]]:
    """Convert RUN:SOURCE-TARGET, or SOURCE-TARGET if there is one run, to a name and a pair."""
    name, _, pair = word.rpartition(":")
    source, dash, target = pair.partition("-")
    if not dash or not source or not target:
        raise InputError(f"--languages {word!r}: give two codes, such as de-en")
    if not name and len(names) > 1:
        raise InputError(f"--languages {word!r}: there are several runs; give RUN:{pair}")
    if name and name not in names:
        raise InputError(f"--languages {word!r}: there is no run {name!r} among {', '.join(names)}")
    return name or names[0], (source, target)
