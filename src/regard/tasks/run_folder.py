"""The files of a run folder: settings, weights, versions, and a file for each vocabulary."""

from collections.abc import Iterable
from pathlib import Path

from regard.errors import InputError

CONFIG_FILE = "config.toml"
WEIGHTS_FILE = "weights.safetensors"
VERSIONS_FILE = "versions.json"
CHECKPOINTS_FOLDER = "checkpoints"
DATA_FOLDER = "data"  # records that `regard.fit` was given
RUN_MARK = "{run}"  # the folder of a run, in its own config


def check_run_files(folder: Path, names: Iterable[str]) -> None:
    """Raise an error if a file of a run is missing in `folder`."""
    for name in names:
        if not (folder / name).is_file():
            raise InputError(f"{folder}: is not a run, there is no {name} in it")


def to_portable(config: str, folder: Path) -> str:
    """Replace the path of a run in its own config by a mark, so that the folder can be moved."""
    return config.replace(f'"{folder.resolve()}/{DATA_FOLDER}/', f'"{RUN_MARK}/{DATA_FOLDER}/')


def from_portable(config: str, folder: Path) -> str:
    """Replace the mark in the config of a run by the path of its folder."""
    return config.replace(f'"{RUN_MARK}/{DATA_FOLDER}/', f'"{folder.resolve()}/{DATA_FOLDER}/')
