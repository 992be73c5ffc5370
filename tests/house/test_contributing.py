"""The guides of CONTRIBUTING.md work: the examples of docs/extending.md, followed in a copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from support.warm import start_server, warm_environment

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "extending.md"
COPIED = ("src", "tests", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml")
NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", ".hypothesis")
# Files of which a guide changes lines; all other files are the contributor's own.
CHANGED = {
    "A score": {
        "src/regard/attention/scores.py",
        "src/regard/attention/catalogue.py",
        "src/regard/config/models/model_fields.py",
        "tests/attention/test_scores.py",
        "docs/attention.md",
    },
    "A model": {
        "src/regard/models/catalogue.py",
        "src/regard/config/models/encoders.py",
        "src/regard/tasks/classify/settings.py",
        "tests/laws/conftest.py",
    },
    "A task": {"src/regard/tasks/catalogue.py"},
}
# Tests of the copy that must notice a missing step, and those that the examples add.
TESTS = {
    "tests/attention/test_scores.py": "euclidean",
    "tests/laws/test_attention.py": "euclidean+softmax",
    "tests/models/test_bag.py": "bag",
    "tests/config/test_model.py": "bag or choices",
    "tests/tasks/wordcount": "wordcount",
    "tests/laws/test_tasks.py": "cover or (wordcount and not new_process)",
    "tests/laws/test_autocast.py": "bag",
    "tests/config/test_presets.py": "wordcount",
    "tests/house/test_habits.py": "one_folder or import_each_other or read_settings",
    "tests/house/test_documents.py": "catalogue_page or has_a_section or has_a_page or has_a_row",
}


class Block(NamedTuple):
    """A code block of the guide: what to do with which file, and the text."""

    section: str
    language: str
    action: str
    path: str
    text: str


def guide_blocks() -> list[Block]:
    blocks = list[Block]()
    for part in re.split(r"^## ", GUIDE.read_text(), flags=re.MULTILINE)[1:]:
        section = part.partition("\n")[0]
        pattern = r"^```(\w+) (\w+)=(\S+)\n(.*?)^```$"
        groups = re.findall(pattern, part, re.MULTILINE | re.DOTALL)
        blocks += [Block(section, *group) for group in groups]
    return blocks


BLOCKS = guide_blocks()


def apply_diff(text: str, diff: str) -> str:
    """Replace the old lines of each hunk, which must stand in the text once, by the new ones."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, f"stands {text.count(old)} times:\n{old}"
        text = text.replace(old, new)
    return text


def follow(block: Block, folder: Path) -> None:
    """Do what a block of the guide says."""
    file = folder / block.path
    if block.language == "diff":
        file.write_text(apply_diff(file.read_text(), block.text))
    elif block.action == "append":
        file.write_text(file.read_text() + "\n\n" + block.text)
    else:
        assert not file.exists(), block.path
        file.parent.mkdir(exist_ok=True)
        file.write_text(block.text)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """Return a copy of the tree in which every block has been followed."""
    folder = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
        else:
            shutil.copy(ROOT / name, folder / name)
    for block in BLOCKS:
        if block.action != "in":
            follow(block, folder)
    run_in(folder, sys.executable, "docs/catalogue.py")
    return folder


def run_in(folder: Path, *command: str) -> str:
    """Run a command on the package of the copy; return its output."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def changed_lines(file: Path, folder: Path) -> int:
    """Return how many lines of an existing file differ in the copy."""
    before = (ROOT / file).read_text().splitlines()
    after = (folder / file).read_text().splitlines()
    return len(set(after) - set(before)) + len(set(before) - set(after))


@pytest.mark.parametrize("section", CHANGED)
def test_a_guide_changes_few_files(section, copy):
    paths = [b.path for b in BLOCKS if b.section == section and b.action != "in"]
    assert {path for path in paths if (ROOT / path).exists()} == CHANGED[section]


def test_a_task_is_its_own_files_one_line_and_one_page(copy):
    paths = {block.path for block in BLOCKS if block.section == "A task" and block.action != "in"}
    [catalogue] = CHANGED["A task"]
    own = ("src/regard/tasks/wordcount/", "tests/tasks/wordcount/")
    others = {path for path in paths if not path.startswith(own)}
    preset, page = "src/regard/presets/wordcount.toml", "docs/tasks/wordcount.md"
    assert others == {catalogue, preset, page}
    assert changed_lines(Path(catalogue), copy) == 1


def test_the_copy_differs_only_where_the_guides_say(copy):
    followed = {block.path for block in BLOCKS} | {"docs/catalogue.md"}
    files = {str(f.relative_to(copy)) for f in copy.rglob("*") if f.is_file()}
    different = {
        name
        for name in files
        if "__pycache__" not in name
        and name.startswith(("src", "docs", "README", "CONTRIBUTING"))
        and (not (ROOT / name).exists() or (ROOT / name).read_bytes() != (copy / name).read_bytes())
    }
    assert different <= followed


@pytest.mark.parametrize("section", ["A model", "A task"])
def test_the_commands_of_a_guide_run(section, copy, environment, tmp_path):
    [commands] = [b.text for b in BLOCKS if b.section == section and b.action == "in"]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],  # noqa: S607
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if section == "A task":
        verbs = re.findall(r"^regard (\w+)", commands, re.MULTILINE)
        assert set(verbs) == {"list", "init", "check", "train", "score", "predict", "look"}
        assert re.search(r"^error\s", done.stdout, re.MULTILINE)  # its own metric
        assert " words\n" in done.stdout  # its own view


@pytest.fixture(scope="module")
def environment(copy, tmp_path_factory) -> dict[str, str]:
    """A PATH whose `regard` is that of the copy, with torch loaded already."""
    folder = tmp_path_factory.mktemp("warm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(copy / "src"))
        start_server(folder, os.getpid())
    return {**warm_environment(folder), "PYTHONPATH": str(copy / "src")}


def test_the_tests_of_the_examples_pass(copy):
    """One process runs all of them; a name that selects nothing fails."""
    selected = " or ".join(f"({Path(path).stem} and ({names}))" for path, names in TESTS.items())
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rA", "-k", selected]
    output = run_in(copy, sys.executable, "-m", "pytest", *options, *TESTS)
    for path in TESTS:
        assert f"PASSED {path}" in output, path


def test_the_examples_have_the_form_of_the_house(copy):
    files = [b.path for b in BLOCKS if b.path.endswith(".py")]
    run_in(copy, sys.executable, "-m", "ruff", "check", *files)
    run_in(copy, sys.executable, "-m", "ruff", "format", "--diff", *files)
