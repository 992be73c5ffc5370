"""`regard verify`: compare the files of a run with its manifest, or accept changed files."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import RunArgument
from regard.files import digest_file
from regard.manifest import DamagedFileError, Manifest, digests_to_json, read_manifest, verify_files
from regard.run import Run, versions
from regard.tasks.run_folder import (
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    WEIGHTS_FILE,
    check_run_files,
    digest_training_data,
    verify_run,
)
from regard.training.checkpoint import checkpoint_folders
from regard.training.lock import FolderLock


def verify(
    folder: RunArgument,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Accept the files of the run as they are, such as a config that you have edited.",
        ),
    ] = False,
) -> None:
    """Compare the files of RUN and of its checkpoints with the checksums in manifest.json.

    Prints a line for each damaged file, and exits with 1 if there is one. --update also accepts the
    files of the data as they are.
    """
    check_run_files(folder, (CONFIG_FILE, WEIGHTS_FILE))
    if update:
        lock = FolderLock(folder)
        try:
            update_manifest(folder)
        finally:
            lock.release()
    checkpoints = checkpoint_folders(folder / CHECKPOINTS_FOLDER)
    problems: list[str] = []
    try:
        verify_run(folder)
    except DamagedFileError as error:
        problems.append(str(error))
    for checkpoint in checkpoints:
        try:
            verify_files(checkpoint)
        except DamagedFileError as error:
            problems.append(f"{error}; a training uses an earlier checkpoint")
    if problems:
        print("\n".join(problems))
        raise typer.Exit(1)
    count = len(read_manifest(folder).files)
    print(f"{folder}: {count} files and {len(checkpoints)} checkpoints are intact")


def update_manifest(folder: Path) -> None:
    """Write the digests of the present files to the manifest, if the run can be loaded."""
    run = Run.read(folder, folder / WEIGHTS_FILE)
    names = [*sorted(f"{name}.json" for name in run.vocabularies), CONFIG_FILE, WEIGHTS_FILE]
    files = {name: digest_file(folder / name) for name in sorted(names)}
    try:
        manifest = read_manifest(folder)
    except DamagedFileError:
        manifest = Manifest({}, {"versions": versions("cpu")})
    facts = manifest.facts
    if "data_files" in facts:
        digests = digest_training_data(run.settings, folder)
        facts = {**facts, "data_files": digests_to_json(digests)}
    changed = [name for name in files if manifest.files.get(name) != files[name]]
    Manifest(files, facts).write(folder)
    print(f"{folder}: accepted {', '.join(changed) or 'all files, none was changed'}")
