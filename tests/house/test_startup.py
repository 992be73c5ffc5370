"""`regard --help` is quick, because it imports nothing heavy."""

import subprocess
import sys
import time
from statistics import median

import pytest

HEAVY = {"torch", "numpy", "pydantic", "rich", "matplotlib", "jaxtyping"}


def imported_by(*words: str) -> set[str]:
    """The top-level packages that a command imports, by the interpreter's own record."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "regard", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line]
    assert "regard.cli.app" in names
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_it_imports_nothing_heavy(word):
    assert imported_by(word) & HEAVY == set()


def test_list_imports_no_torch():
    assert imported_by("list", "--json") & {"torch", "numpy"} == set()


def test_help_takes_at_most_a_fifth_of_importing_torch():
    """Side by side and in turns, so that a busy machine slows both."""
    commands = {"help": ["-m", "regard", "--help"], "torch": ["-c", "import torch"]}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(5):
        for name, words in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - start)
    share = median(seconds["help"]) / median(seconds["torch"])
    print(f"regard --help takes {share:.3f} of the time of importing torch: {seconds}")
    assert share <= 0.2
