"""A file is there whole or as it was."""

import os

import pytest

from regard.files import write_atomic


def test_it_is_written(tmp_path):
    path = tmp_path / "a"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_it_stays_as_it_was(tmp_path, monkeypatch, fails):
    path = tmp_path / "a"
    path.write_bytes(b"one")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, fails, full)
    with pytest.raises(OSError, match=r"(?i)no space"):
        write_atomic(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]
