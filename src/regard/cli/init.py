"""`regard init`: print a complete config, with a comment on every setting."""

from typing import Annotated

import typer

from regard.config.dump import dumps
from regard.tasks.load import resolve_settings


def init(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK", help="Name of a task, such as translate. `regard list` lists all tasks."
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE…", help="Settings to change in the config, as in model.kind=luong."
        ),
    ] = None,
) -> None:
    """Print a complete config for TASK, with a comment on every setting.

    Example: regard init translate > config.toml
    """
    print(dumps(resolve_settings({"task": task}, changes or ())), end="")
