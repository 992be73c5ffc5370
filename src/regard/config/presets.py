"""Presets: settings by name. Each reproduces a number of docs/results.md."""

from itertools import takewhile
from pathlib import Path

PRESETS_FOLDER = Path(__file__).parents[1] / "presets"


def preset_paths() -> dict[str, Path]:
    """Return the file of each preset."""
    return {path.stem: path for path in sorted(PRESETS_FOLDER.glob("*.toml"))}


def preset_comment(path: Path) -> str:
    """Return the comment at the start of a preset."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(takewhile(lambda line: line.startswith("#"), lines))


def preset_description(path: Path) -> str:
    """Return the first comment of a preset, which describes it."""
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()
