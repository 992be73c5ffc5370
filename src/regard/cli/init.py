"""`regard init`: print a complete config of a task or preset, with a comment on every setting."""

from typing import Annotated

import typer

from regard.config.dump import dumps
from regard.config.presets import preset_comment, preset_paths
from regard.tasks.load import load_settings, resolve_settings


def init(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="Name of a task, such as translate, or of a preset. `regard list` lists both.",
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
    presets = preset_paths()
    if name in presets:
        print(preset_comment(presets[name]))
        settings = load_settings(presets[name], changes or ())
    else:
        settings = resolve_settings({"task": name}, changes or ())
    print(dumps(settings), end="")
