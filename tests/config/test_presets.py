"""Presets: each loads by its name, says what it is for, and is documented."""

from pathlib import Path

import pytest

from regard.config.presets import preset_description, preset_paths
from regard.tasks.load import load_settings

DOCS = Path(__file__).parents[2] / "docs"


def test_they_are_found():
    assert "multi30k-transformer" in preset_paths()


@pytest.mark.parametrize("name", preset_paths())
def test_each_loads_and_is_documented(name: str):
    settings = load_settings(name, ["train.steps=5000"])
    assert settings.train.steps == 5000
    assert len(preset_description(preset_paths()[name])) > 20
    pages = [DOCS / "results.md", DOCS / "tasks" / f"{settings.task}.md"]
    assert any(f"`{name}`" in page.read_text(encoding="utf-8") for page in pages)


def test_a_near_miss_is_told():
    with pytest.raises(ValueError, match="no such file or preset; did you mean 'ladder-encdec'"):
        load_settings("lader-encdec")


def test_a_file_goes_before_a_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("ladder-encdec").write_text("seed = 77")
    assert load_settings("ladder-encdec").seed == 77


def test_a_folder_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("ladder-encdec").mkdir()
    assert load_settings("ladder-encdec").model.kind == "encdec"
