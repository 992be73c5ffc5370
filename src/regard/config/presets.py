"""Ready-made settings, by name: each belongs to a number in docs/results.md."""

from pathlib import Path

PRESETS_FOLDER = Path(__file__).parents[1] / "presets"


def preset_paths() -> dict[str, Path]:
    """The files, by name."""
    return {path.stem: path for path in sorted(PRESETS_FOLDER.glob("*.toml"))}


def preset_description(path: Path) -> str:
    """What a preset says of itself: its first line."""
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()
