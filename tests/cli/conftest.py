"""Run the command line as a user does: in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

Regard = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def regard() -> Regard:
    """`regard("list", COLUMNS="80")`: words, and settings of the environment."""

    def run(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "regard", *words],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            env={**os.environ, **environment},
        )

    return run
