"""`regard --help` is quick, because it imports nothing heavy."""

import subprocess
import sys

import pytest

MAX_MODULES = 250  # that `regard --help` imports; torch alone would bring more than a thousand
HEAVY = {"torch", "numpy", "pydantic", "rich", "matplotlib", "jaxtyping"}


def imported_by(*words: str) -> list[str]:
    """Return the modules that a command imports, by the interpreter's own record."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "regard", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line]
    assert "regard.cli.app" in names
    return names


def packages(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_import_little(word):
    """A count of modules instead of seconds, which depend on the machine."""
    modules = imported_by(word)
    assert packages(modules) & HEAVY == set()
    assert len(modules) < MAX_MODULES


def test_list_imports_no_torch():
    assert packages(imported_by("list", "--json")) & {"torch", "numpy"} == set()
