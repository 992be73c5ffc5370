"""Checks of the folder of a training before it begins or resumes."""

from collections.abc import Generator
from pathlib import Path

from regard.config.settings import Settings
from regard.errors import InputError
from regard.files import JsonObject
from regard.manifest import MANIFEST_FILE
from regard.parsing import decode_utf8, parse_toml
from regard.run import versions
from regard.tasks.catalogue import find_task
from regard.tasks.run_folder import CHECKPOINTS_FOLDER, CONFIG_FILE, DATA_FOLDER, WEIGHTS_FILE
from regard.training.log import LOG_FILES


def changed_versions(saved: JsonObject, device: str) -> Generator[str]:
    """Yield a line for each version whose change also changes the last digits of the weights."""
    current = versions(device)
    remedies = {
        "threads": "give --threads {} for the same bytes",
        "torch": "install it again",
        "device": "give --device {} for the same bytes",
    }
    for name, remedy in remedies.items():
        if name in saved and saved[name] != current[name]:
            yield (
                f"the training began with {name} = {saved[name]}, and continues with "
                f"{current[name]}; its result may differ slightly ({remedy.format(saved[name])})"
            )


def check_folder_is_free(folder: Path, settings: Settings) -> None:
    """Raise an error if a folder holds files that do not belong to a run of these settings."""
    loaders = find_task(settings.task).builder().vocabulary_loaders(settings)
    run_files = {CONFIG_FILE, WEIGHTS_FILE, MANIFEST_FILE, CHECKPOINTS_FOLDER, DATA_FOLDER}
    run_files |= set(LOG_FILES)
    run_files |= {f"{name}.json" for name in loaders}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder for the run")
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in run_files and not path.name.startswith("."):
            raise InputError(f"{folder}: is not a run (it holds {path.name}); use another folder")


def check_task(config: Path, task: str) -> None:
    """Check the task of a saved config before its settings, whose tables depend on the task."""
    text = decode_utf8(config.read_bytes(), str(config))
    saved_task = parse_toml(text, str(config)).get("task", task)
    if saved_task != task:
        raise InputError(
            f"{config.parent}: holds a run of task {saved_task!r}, not {task!r}; use another folder"
        )
