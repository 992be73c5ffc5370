"""The documents are true: their code runs, and every catalogue entry is described."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from regard.attention.catalogue import NORMALIZERS, SCORES
from regard.data.catalogue import CORPORA
from regard.models.catalogue import MODELS
from regard.tasks.catalogue import TASKS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "sh", "toml", "json", "text"}
NOT_RUN, NOT_RUN_AT_MOST = "no-run", 3
# All that a block which is not run may do.
INSTALLS = re.compile(
    r"(make|pip install|pre-commit install|git clone|cd|\. \.venv/bin/activate)\b"
)


def load_warm() -> ModuleType:
    """Import warm.py, which lies beside this file and is no part of a package."""
    spec = spec_from_file_location("warm", Path(__file__).with_name("warm.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


warm = load_warm()


class Block(NamedTuple):
    place: str
    info: str
    text: str

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]


def blocks(text: str, place: str = "") -> list[Block]:
    """Fenced code blocks; the line number makes a failure easy to find."""
    found = []
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(f"{place}:{line}", match[1].strip(), match[2]))
    return found


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


ALL = [block for file in DOCUMENTS for block in blocks(file.read_text(), name(file))]
SHELL = [block for block in ALL if block.info == "sh"]
SKIPPED = [block for block in ALL if NOT_RUN in block.info]


@pytest.mark.parametrize("file", DOCUMENTS, ids=name)
def test_python_runs(file, tmp_path, monkeypatch):
    """The blocks of a document run one after another, as a reader would try them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(file.read_text(), name(file)):
        if block.info == "python":
            exec(compile(block.text, block.place, "exec"), names)  # noqa: S102


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> Iterator[dict[str, str]]:
    """A PATH whose `regard` has torch loaded already."""
    command = warm.WarmCommand(tmp_path_factory.mktemp("warm") / "bin")
    yield command.environment()
    command.close()


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.place)
def test_commands_run(block, tmp_path, environment):
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],  # noqa: S607
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr


def test_blocks_that_are_not_run_are_few_and_only_install():
    assert len(SKIPPED) <= NOT_RUN_AT_MOST
    for block in SKIPPED:
        assert block.info == f"sh {NOT_RUN}", block.place
        for line in filter(None, block.text.splitlines()):
            assert INSTALLS.match(line), f"{block.place}: {line}"


def test_every_block_says_what_it_is():
    for block in ALL:
        assert block.language in LANGUAGES, f"{block.place}: {block.info!r}"
        if block.language == "toml":
            tomllib.loads(block.text)
        if block.language == "json":
            json.loads(block.text)


def test_blocks_are_found():
    text = "a\n```python\nx = 1\n```\n\n```sh no-run\nmake\n```\n"
    assert blocks(text, "f") == [
        Block("f:2", "python", "x = 1\n"),
        Block("f:6", "sh no-run", "make\n"),
    ]
    assert {block.place.partition(":")[0] for block in ALL} >= {"README.md", "CONTRIBUTING.md"}
    assert SHELL


@pytest.mark.parametrize("file", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=name)
def test_links_lead_somewhere(file):
    """Links to files, and to headings of the same file; addresses on the web are not tried."""
    text = file.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        if path:
            assert (file.parent / path).exists(), target
        else:
            assert anchor in anchors, target


@pytest.mark.parametrize("entry", [*SCORES, *NORMALIZERS])
def test_every_catalogue_entry_has_a_row_and_a_section(entry):
    readme, page = (ROOT / "README.md").read_text(), (ROOT / "docs" / "attention.md").read_text()
    assert re.search(rf"^\| `{entry}` \|", readme, re.MULTILINE)
    assert re.search(rf"^### `?{entry}`?\b", page, re.MULTILINE)


def test_no_row_of_readme_is_of_something_gone():
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(rows) == {*SCORES, *NORMALIZERS, *MODELS, *TASKS, *CORPORA}


@pytest.mark.parametrize(
    ("entry", "page"),
    [
        *(
            (name, f"docs/models/{entry.import_path.split('.')[2].partition(':')[0]}.md")
            for name, entry in MODELS.items()
        ),
        *((name, f"docs/tasks/{name}.md") for name in TASKS),
        *((name, "docs/data.md") for name in CORPORA),
    ],
)
def test_every_model_task_and_corpus_has_a_row_and_a_page(entry, page):
    assert re.search(rf"^\| `{entry}` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert entry in (ROOT / page).read_text()


def test_every_catalogue_entry_is_made_by_something_that_exists():
    for piece in {**SCORES, **NORMALIZERS}.values():
        module, _, thing = piece.implementation.partition(".")
        source = (ROOT / "src" / "regard" / "attention" / f"{module}.py").read_text()
        assert re.search(rf"^(class|def) {thing}\b", source, re.MULTILINE)
