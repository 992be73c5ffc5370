"""A manifest: each flipped bit is noticed, and a kill between two writes leaves a valid folder."""

import json
from pathlib import Path

import pytest

from regard.files import FileDigest, digest_file, draft_path, remove_drafts
from regard.manifest import (
    MANIFEST_FILE,
    DamagedFileError,
    Manifest,
    checksum,
    read_manifest,
    replace_files,
    verify_files,
)


def write_folder(folder: Path, contents: dict[str, bytes]) -> Manifest:
    folder.mkdir(exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    manifest = Manifest({name: digest_file(folder / name) for name in contents}, {"step": 3})
    manifest.write(folder)
    return manifest


def test_what_is_written_is_read(tmp_path: Path):
    manifest = write_folder(tmp_path, {"a": b"one", "b": b""})
    assert read_manifest(tmp_path) == verify_files(tmp_path) == manifest
    assert json.loads((tmp_path / MANIFEST_FILE).read_text())["format"] == 1


@pytest.mark.parametrize("name", ["a", MANIFEST_FILE])
def test_every_flipped_bit_is_noticed(tmp_path: Path, name: str):
    write_folder(tmp_path, {"a": b"some weights"})
    path = tmp_path / name
    data = path.read_bytes()
    for index in range(len(data)):
        damaged = bytearray(data)
        damaged[index] ^= 1 << index % 8
        path.write_bytes(damaged)
        with pytest.raises(DamagedFileError, match=r"(a|manifest\.json):") as error:
            verify_files(tmp_path)
        assert "\n" not in str(error.value)
    path.write_bytes(data)
    verify_files(tmp_path)


def test_sizes_are_compared_without_digests(tmp_path: Path):
    write_folder(tmp_path, {"a": b"one"})
    (tmp_path / "a").write_bytes(b"two")
    verify_files(tmp_path, digests=False)
    verify_files(tmp_path, skip=("a",))
    with pytest.raises(DamagedFileError, match=r"a: checksum differs from manifest.json; the file"):
        verify_files(tmp_path)
    (tmp_path / "a").write_bytes(b"three")
    with pytest.raises(DamagedFileError, match=r"a: has 5 bytes, but 3 in manifest.json"):
        verify_files(tmp_path, digests=False)
    (tmp_path / "a").unlink()
    with pytest.raises(DamagedFileError, match=r"a: is missing, but manifest.json lists it"):
        verify_files(tmp_path, digests=False)


def write_values(folder: Path, **values: object) -> None:
    values = {"format": 1, "files": {}, **values}
    text = json.dumps({**values, "sha256": checksum(values)})
    (folder / MANIFEST_FILE).write_text(text)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": 2}, "has format 2, but this version of regard reads format 1; update regard"),
        ({"format": None}, "has format None"),
        ({"files": 5}, "lists no files"),
        ({"files": {"a": 5}}, "a: expected size and sha256, not 5"),
        ({"files": {"../a": {"size": 1, "sha256": ""}}}, r"\.\./a: expected"),
    ],
)
def test_other_manifests_are_refused(tmp_path: Path, values: dict[str, object], message: str):
    write_values(tmp_path, **values)
    with pytest.raises(DamagedFileError, match=message):
        verify_files(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\x00"])
def test_files_of_something_else_are_refused(tmp_path: Path, text: str):
    (tmp_path / MANIFEST_FILE).write_text(text)
    with pytest.raises(DamagedFileError, match=r"manifest\.json"):
        verify_files(tmp_path)


@pytest.mark.parametrize("killed_at", range(4))
def test_killed_while_a_file_is_replaced(tmp_path: Path, monkeypatch, killed_at: int):
    """The folder holds the old file or the new one, and the manifest fits both."""
    folder, draft = tmp_path / "run", tmp_path / "draft"
    manifest = write_folder(folder, {"weights": b"old", "config": b"same"})
    draft.mkdir()
    (draft / "weights").write_bytes(b"newer")
    renames, replace = [], Path.replace

    def killed(path: Path, target: Path) -> Path:
        if len(renames) == killed_at:
            raise KeyboardInterrupt
        renames.append(target)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", killed)
    if killed_at < 3:  # the manifest, the file, the manifest again
        with pytest.raises(KeyboardInterrupt):
            replace_files(draft, folder, manifest, last="weights", keep=True)
    else:
        replace_files(draft, folder, manifest, last="weights", keep=True)
    assert (folder / "weights").read_bytes() == (b"old" if killed_at < 2 else b"newer")
    assert verify_files(folder).files["weights"].size == (3 if killed_at < 2 else 5)
    assert (read_manifest(folder).next_files is None) == (killed_at in (0, 3))


def test_a_mixture_of_two_versions_is_refused(tmp_path: Path):
    old = write_folder(tmp_path, {"a": b"1", "b": b"1"}).files
    new = write_folder(tmp_path, {"a": b"2", "b": b"2"}).files
    Manifest(old, {}, new).write(tmp_path)
    verify_files(tmp_path)
    (tmp_path / "a").write_bytes(b"1")
    with pytest.raises(DamagedFileError, match="the folder was not completely written"):
        verify_files(tmp_path)


def test_drafts_are_known_by_their_names(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"1")
    assert draft_path(tmp_path / "a") != draft_path(tmp_path / "a")
    draft_path(tmp_path / "a").write_bytes(b"half")
    draft_path(tmp_path / "step").mkdir()
    (tmp_path / ".hidden").write_bytes(b"")
    remove_drafts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "a"]


def test_digests_follow_the_file(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest_file(path) == FileDigest(3, expected)
    path.write_bytes(b"abd")
    assert digest_file(path) != FileDigest(3, expected)
