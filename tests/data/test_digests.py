"""Digests of data files: of every file that a [data] table can name."""

from pathlib import Path

from regard.config.base import Config
from regard.data.digests import FILE_FIELDS, digest_data, digest_path, named_files
from regard.tasks.catalogue import TASKS, table_classes
from regard.tasks.load import resolve_settings


def test_every_setting_that_names_a_file_is_known():
    """Names of files are texts whose description speaks of a file or a folder."""
    for task in TASKS:
        for kind, table in table_classes(task, "data").items():
            for name, field in table.model_fields.items():
                words = (field.description or "").lower()
                is_text = "str" in str(field.annotation) and not words.startswith("name")
                if is_text and words.startswith(("file", "folder", "one file", "json file")):
                    assert name in FILE_FIELDS, (task, kind, name)


def test_files_of_a_mixture_and_alignments(tmp_path: Path):
    for name in ("a.tsv", "b.tsv", "links"):
        (tmp_path / name).write_text(name)
    parts = [
        {"data": {"kind": "files", "train": str(tmp_path / "a.tsv")}},
        {"data": {"kind": "files", "train": str(tmp_path / "b.tsv"), "dev": "-"}},
        {"data": {"kind": "dates"}},
    ]
    train = {"alignments": str(tmp_path / "links")}
    settings = resolve_settings({"data": {"kind": "mix", "parts": parts}, "train": train})
    data: Config = settings.data
    assert [Path(name).name for name in named_files(data)] == ["a.tsv", "b.tsv", "-"]
    digests = digest_data(data, settings.train)
    assert [Path(name).name for name in digests] == ["a.tsv", "b.tsv", "links"]


def test_a_folder_is_digested_with_its_names(tmp_path: Path):
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "1.png").write_bytes(b"1")
    first = digest_path(tmp_path)
    assert first.size == 1
    (tmp_path / "cats" / "1.png").rename(tmp_path / "cats" / "2.png")
    assert digest_path(tmp_path) != first
    (tmp_path / "cats" / "2.png").rename(tmp_path / "cats" / "1.png")
    assert digest_path(tmp_path) == first
