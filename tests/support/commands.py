"""Fixtures that call the command line: in a process of its own, or in the process of the test."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.cli.app import main

Regard = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def regard(warm: Path) -> Regard:
    """`regard("list", COLUMNS="80")`: words, and settings of the environment.

    The process is a fork of one that has torch loaded.
    """

    def run(
        *words: str, stdin: str = "", cwd: Path | None = None, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [warm / "regard", *words],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
            cwd=cwd,
            env={**os.environ, **environment},
        )

    return run


@pytest.fixture
def error_line(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`error_line("train", "none.toml")`: the one line of a command that fails."""

    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(list(words))
        out, err = capsys.readouterr()
        assert (end.value.code, out, err.count("\n")) == (1, "", 1), err
        return err

    return run


@pytest.fixture
def command(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """`command("score", "run")`: the command line in this process, in the fixture `folder`."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str, stdin: str = "", code: int = 0) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as end:
            main(list(words))
        out, err = capsys.readouterr()
        assert end.value.code == code, err
        return out if code == 0 else err

    return run
