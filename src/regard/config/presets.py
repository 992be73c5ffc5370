"""Presets: settings by name. Each reproduces a number of docs/results.md."""

from pathlib import Path

PRESETS_FOLDER = Path(__file__).parents[1] / "presets"


def preset_paths() -> dict[str, Path]:
    """Return the file of each preset."""
    return {path.stem: path for path in sorted(PRESETS_FOLDER.glob("*.toml"))}


def preset_description(path: Path) -> str:
    """Return the first comment of a preset, which describes it."""
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()
