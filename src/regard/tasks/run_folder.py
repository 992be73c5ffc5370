"""The files of a run folder: settings, weights, a file for each vocabulary, and a manifest."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path

from regard.config.settings import Settings
from regard.data.digests import digest_data, digest_path
from regard.errors import InputError
from regard.files import FileDigest
from regard.manifest import MANIFEST_FILE, DamagedFileError, Manifest, verify_files

CONFIG_FILE = "config.toml"
WEIGHTS_FILE = "weights.safetensors"
LOCK_FILE = ".lock"  # exists while a training uses the folder
CHECKPOINTS_FOLDER = "checkpoints"
DATA_FOLDER = "data"  # records that `regard.fit` was given
RUN_MARK = "{run}"  # the folder of a run, in its own config
OWN_DATA = f"{RUN_MARK}/{DATA_FOLDER}"


def check_run_files(folder: Path, names: Iterable[str]) -> None:
    """Raise an error if a file of a run is missing in `folder`."""
    is_run = (folder / CONFIG_FILE).is_file()
    for name in names:
        if not (folder / name).is_file():
            raise InputError(
                f"{folder}: the run has no {name}; restore this file, or train the run again"
                if is_run
                else f"{folder}: is not a run, there is no {name} in it; {folder_hint(folder)}"
            )


def folder_hint(folder: Path) -> str:
    """Say which folder to name instead: a run in `folder`, or one beside it with a similar name."""
    inside = sorted(path.parent for path in folder.glob(f"*/{CONFIG_FILE}"))[:3]
    if inside:
        return f"name one of its runs, such as {', '.join(map(str, inside))}"
    if folder.is_dir():
        return "name the folder of a run"
    beside = {path.parent.name: path.parent for path in folder.parent.glob(f"*/{CONFIG_FILE}")}
    similar = get_close_matches(folder.name, beside, n=1)
    return f"did you mean {beside[similar[0]]}?" if similar else "name the folder of a run"


def verify_run(folder: Path, *, skip: Collection[str] = (), digests: bool = True) -> Manifest:
    """Compare the files of a run with its manifest, and return the manifest.

    Files in `skip` are not read. Without `digests`, only the sizes are compared.
    """
    if not (folder / MANIFEST_FILE).is_file():
        raise DamagedFileError(
            f"{folder}: has no {MANIFEST_FILE}, so its files cannot be verified; "
            f"write one with `regard verify {folder} --update`"
        )
    try:
        manifest = verify_files(folder, skip=skip, digests=digests)
        if digests:
            verify_own_data(folder, manifest)
        return manifest
    except DamagedFileError as error:
        raise DamagedFileError(
            f"{error}; restore it or train again (after an intended change: "
            f"`regard verify {folder} --update`)"
        ) from None


def verify_own_data(folder: Path, manifest: Manifest) -> None:
    """Compare the data that `regard.fit` has written to the folder of a run with its manifest."""
    expected = manifest.facts.get("data_files")
    digest = expected.get(OWN_DATA) if isinstance(expected, dict) else None
    path = folder / DATA_FOLDER
    if digest is not None and path.is_dir() and digest_path(path)._asdict() != digest:
        raise DamagedFileError(
            f"{path}: checksum differs from {MANIFEST_FILE}; the data were changed or damaged"
        )


def digest_training_data(settings: Settings, folder: Path) -> dict[str, FileDigest]:
    """Return the digests of the data files; all data in the folder of the run are one entry."""
    own_data = folder.resolve() / DATA_FOLDER
    digests = digest_data(settings.data, settings.train)
    others = {
        name: digest
        for name, digest in digests.items()
        if not Path(name).resolve().is_relative_to(own_data)
    }
    return others if len(others) == len(digests) else {OWN_DATA: digest_path(own_data), **others}


def verify_weights(folder: Path, *, digests: bool = True) -> Path:
    """Verify the run in a folder, or a checkpoint in it, and return the folder of the run."""
    if folder.parent.name != CHECKPOINTS_FOLDER:
        check_run_files(folder, (CONFIG_FILE, WEIGHTS_FILE))
        verify_run(folder, digests=digests)
        return folder
    check_run_files(folder, (WEIGHTS_FILE,))
    verify_files(folder, digests=digests)
    run_folder = folder.parent.parent
    check_run_files(run_folder, (CONFIG_FILE, WEIGHTS_FILE))
    verify_run(run_folder, skip=(WEIGHTS_FILE,), digests=digests)
    return run_folder


def to_portable(config: str, folder: Path) -> str:
    """Replace the path of a run in its own config by a mark, so that the folder can be moved."""
    return config.replace(f'"{folder.resolve()}/{DATA_FOLDER}/', f'"{RUN_MARK}/{DATA_FOLDER}/')


def from_portable(config: str, folder: Path) -> str:
    """Replace the mark in the config of a run by the path of its folder."""
    return config.replace(f'"{RUN_MARK}/{DATA_FOLDER}/', f'"{folder.resolve()}/{DATA_FOLDER}/')
