"""Nothing in the tree ties it to one machine or one registry."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_OURS = {".git", ".venv", "build", "dist", "runs", "__pycache__"}

MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:home|root|work|opt|Users|mnt|srv|farm|private|tmp)/\w")
# in two parts, so that this file does not name what it forbids
HOSTS = [("pypi", "org"), ("pythonhosted", "org"), ("download.pytorch", "org")]
HOSTS += [(name, end) for name in ("anaconda", "npmjs") for end in ("org", "com")]
REGISTRY = re.compile(
    "|".join(re.escape(".".join(host)) for host in HOSTS)
    + "|(?:extra-)?index-"
    + "url|find-"
    + "links|INDEX_"
    + "URL|FIND_"
    + "LINKS"
)


def ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    made = any(part in NOT_OURS or part.endswith((".egg-info", "_cache")) for part in parts)
    made = made or path.suffix == ".so"  # compiled kernels
    return path.is_file() and not made and ".hypothesis" not in parts


FILES = sorted(filter(ours, ROOT.rglob("*")))


def read(file: Path) -> str:
    return file.read_bytes().decode("utf-8", errors="replace")


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine path", "registry"])
def test_no_file_names_a_machine_or_a_registry(pattern):
    found = {
        str(file.relative_to(ROOT)): hit.group()
        for file in FILES
        if (hit := pattern.search(read(file)))
        and (pattern is REGISTRY or file != Path(__file__))  # which has examples of paths
    }
    assert found == {}


def test_the_tree_is_seen():
    names = {str(file.relative_to(ROOT)) for file in FILES}
    assert {"README.md", "pyproject.toml", "Makefile", "src/regard/__init__.py"} <= names
    assert not any(name.startswith(".venv") for name in names)


def test_the_patterns_find_what_they_forbid():
    assert MACHINE_PATH.search("open('/home/me/x')")
    assert MACHINE_PATH.search("PATH=/opt/tool")
    assert not MACHINE_PATH.search("src/work/x and ../opt/y and #!/usr/bin/env")
    for host in HOSTS:
        assert REGISTRY.search(f"https://{'.'.join(host)}/simple")
    assert REGISTRY.search("pip install --extra-index-" + "url x")


def test_files_are_small():
    large = {str(f.relative_to(ROOT)): f.stat().st_size for f in FILES if f.stat().st_size > 2**20}
    assert large == {}
