"""`regard init`: a complete config, with a word on every setting."""

from typing import Annotated

import typer

from regard.config.dump import dumps
from regard.tasks.load import resolve_settings


def init(
    task: Annotated[
        str, typer.Argument(help="What the model is to do; `regard list` shows the tasks.")
    ],
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="Such as model.kind=luong.")
    ] = None,
) -> None:
    """Print a config for TASK; `regard init translate > config.toml`."""
    print(dumps(resolve_settings({"task": task}, changes or ())), end="")
