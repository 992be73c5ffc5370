"""The files of a run folder: settings, weights, versions, and a file for each vocabulary."""

from collections.abc import Iterable
from pathlib import Path

CONFIG_FILE = "config.toml"
WEIGHTS_FILE = "weights.safetensors"
VERSIONS_FILE = "versions.json"
CHECKPOINTS_FOLDER = "checkpoints"


def check_run_files(folder: Path, names: Iterable[str]) -> None:
    """Raise an error if a file of a run is missing in `folder`."""
    for name in names:
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: is not a run, there is no {name} in it")
