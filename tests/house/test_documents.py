"""The documents are true and readable: code runs, catalogues are complete, lines are short."""

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
from support.warm import warm_environment

from regard.attention.catalogue import NORMALIZERS, SCORES
from regard.config.presets import preset_paths
from regard.data.catalogue import CORPORA
from regard.models.catalogue import MODELS
from regard.tasks.catalogue import DEFAULT_TASK, TASKS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARKDOWN = [*DOCUMENTS, ROOT / "CHANGELOG.md"]
LANGUAGES = {"python", "sh", "toml", "json", "text", "diff", "markdown"}
NOT_RUN, NOT_RUN_AT_MOST = "no-run", 3
# All that a block which is not run may do.
INSTALLS = re.compile(
    r"(make|pip install|pre-commit install|git clone|cd|\. \.venv/bin/activate)\b"
)
MAX_COLUMNS, MAX_SENTENCE_WORDS, MAX_README_LINES = 100, 40, 150


def load_script(path: Path) -> ModuleType:
    """Import a file that is not part of a package."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


catalogue = load_script(ROOT / "docs" / "catalogue.py")


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
# What `regard score` must print at least: a page whose example ends at chance teaches nothing.
LEAST_SCORES = {
    'task = "fewshot"\nembed': ("accuracy", 60.0),  # chance: 33.3
    "arms = 3": ("return", 3.2),  # chance: 2.89, best: 3.68
}


@pytest.mark.parametrize("file", DOCUMENTS, ids=name)
def test_python_runs(file, tmp_path, monkeypatch):
    """The blocks of a document run one after another, as a reader would try them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(file.read_text(), name(file)):
        if block.info == "python":
            exec(compile(block.text, block.place, "exec"), names)  # noqa: S102


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.place)
def test_commands_run(block, tmp_path, warm):
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],  # noqa: S607
        cwd=tmp_path,
        env=warm_environment(warm),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for example, (metric, least) in LEAST_SCORES.items():
        if example in block.text:
            assert printed_score(metric, done.stdout) > least, done.stdout


def printed_score(metric: str, output: str) -> float:
    [score] = re.findall(rf"^{metric} +(\d+\.\d+)  ", output, re.MULTILINE)
    return float(score)


def test_examples_with_a_least_score_are_found():
    for example in LEAST_SCORES:
        assert sum(example in block.text for block in SHELL) == 1, example
    assert printed_score("return", "return of  3.02\nreturn   3.55  return|v:1\n") == 3.55


def test_blocks_that_are_not_run_are_few_and_only_install():
    assert len(SKIPPED) <= NOT_RUN_AT_MOST
    for block in SKIPPED:
        assert block.info == f"sh {NOT_RUN}", block.place
        for line in filter(None, block.text.splitlines()):
            assert INSTALLS.match(line), f"{block.place}: {line}"


def test_every_block_says_what_it_is():
    for block in ALL:
        assert block.language in LANGUAGES, f"{block.place}: {block.info!r}"
        # what tests/house/test_contributing.py follows in a copy of the tree
        is_followed = re.search(r" (file|append|in)=\S+$", block.info) is not None
        assert is_followed == block.place.startswith("docs/extending.md"), block.place
        assert " " not in block.info or is_followed or NOT_RUN in block.info, block.place
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


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub forms them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}


def broken_links(file: Path) -> list[str]:
    """Return links to files or headings that do not exist; web addresses are not tried."""
    broken = []
    text = re.sub(r"^```.*?^```$", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        page = (file.parent / path) if path else file
        if "://" in target:
            continue
        if not page.exists() or (anchor and anchor not in anchors(page.read_text())):
            broken.append(f"{name(file)}: {target}")
    return broken


def test_links_lead_somewhere():
    assert [link for file in MARKDOWN for link in broken_links(file)] == []


def test_broken_links_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A `b` c\n[x](gone.md) [x](#a-b-c) [x](#no) [x](page.md#no) [x](http://y)\n")
    assert broken_links(page) == ["page.md: gone.md", "page.md: #no", "page.md: page.md#no"]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines of Markdown; code, tables and comments become empty lines."""
    fenced = comment = False
    indented, previous = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        comment = comment or line.startswith("<!--")
        starts_code = line.startswith("    ") and not previous.strip()
        indented = bool(starts_code or (indented and (line.startswith("    ") or not line)))
        hidden = fenced or fence or comment or indented or line.lstrip().startswith("|")
        comment = comment and "-->" not in line
        previous = line
        yield number, "" if hidden else line


def wide_lines(text: str) -> list[int]:
    """Return the numbers of lines that are too long, outside of tables and code."""
    return [number for number, line in prose(text) if len(line) > MAX_COLUMNS]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page; a code span or a link target counts as one word."""
    text = "\n".join(line for _, line in prose(text))
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(r"\]\([^)\s]+\)", "]", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>#]|\d+\.)\s)|(?<=\n)(?=#)", text):
        block = re.sub(r"^\s*(?:[-*>]|#+|\d+\.)\s", "", block)
        yield from filter(None, re.split(r"[.!?:][)\"”*_\]]*(?:\s+|$)", " ".join(block.split())))


def long_sentences(text: str) -> list[str]:
    """Return the beginnings of sentences with too many words."""
    return [
        sentence[:60]
        for sentence in sentences(text)
        if sum(1 for word in sentence.split() if re.search(r"\w", word)) > MAX_SENTENCE_WORDS
    ]


def test_lines_are_short():
    wide = [f"{name(file)}:{n}" for file in MARKDOWN for n in wide_lines(file.read_text())]
    assert not wide, "\n".join(wide)


def test_sentences_are_short():
    long = [f"{name(file)}: {s}" for file in MARKDOWN for s in long_sentences(file.read_text())]
    assert not long, "\n".join(long)


def test_wide_lines_are_found():
    wide = "x" * (MAX_COLUMNS + 1)
    hidden = f"```text\n{wide}\n```\n\n    {wide}\n\n    {wide}\n\n| {wide} |\n<!-- {wide} -->\n"
    assert wide_lines(hidden) == []
    assert wide_lines(f"{hidden}{wide}\n") == [11]
    assert wide_lines(f"- item\n    {wide}\n") == [2]


def test_long_sentences_are_found():
    half = "word " * (MAX_SENTENCE_WORDS // 2)
    assert not long_sentences(f"{half}{half}.\n")
    assert long_sentences(f"{half}\n{half} more.\n")
    assert long_sentences(f"- {half}; {half}\n  more\n")
    for end in (". ", "! ", "? ", ": ", ".) ", "\n- ", "\n1. ", "\n\n", "\n# title\n"):
        assert not long_sentences(half + end + half + "more")
    assert not long_sentences(f"{half}`{half}{half}` and [link]({half.replace(' ', '-')}).\n")
    assert not long_sentences(f"```text\n{half}{half}{half}\n```\n| {half}{half}{half} |\n")
    assert len([*sentences("One. Two: three.\n- four\n- five\n\n# six\n")]) == 6


def test_readme_is_short():
    readme = (ROOT / "README.md").read_text()
    assert readme.count("\n") <= MAX_README_LINES


def test_readme_has_a_row_for_each_task_with_a_result():
    readme, results = ((ROOT / page).read_text() for page in ("README.md", "docs/results.md"))
    measured = {
        tomllib.loads(path.read_text()).get("task", DEFAULT_TASK)
        for preset, path in preset_paths().items()
        if preset in results
    }
    rows = re.findall(r"^\| \[(\w+)\]\(docs/tasks/(\w+)\.md\) \|", readme, re.MULTILINE)
    assert [pair[0] for pair in rows] == [pair[1] for pair in rows]
    listed = [pair[0] for pair in rows]
    assert len(listed) == len(set(listed))
    assert measured <= set(listed) <= set(TASKS)


def test_results_in_readme_stand_in_results():
    """Every figure in the table of tasks is one of docs/results.md, beside the same preset."""
    results = (ROOT / "docs" / "results.md").read_text().splitlines()
    rows = re.findall(r"^\| \[\w+\].*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    for row in rows:
        preset, *figures = [cell.strip() for cell in row.split("|")[3:-1]]
        beside = "\n".join(line for line in results if preset in line)
        for figure in re.findall(r"\d+\.\d+", " ".join(figures)):
            assert figure in beside, row


def test_catalogue_page_is_current():
    page = (ROOT / "docs" / "catalogue.md").read_text(encoding="utf-8")
    assert page == catalogue.catalogue_page(), "run: python docs/catalogue.py"
    for entry in [*SCORES, *NORMALIZERS, *MODELS, *TASKS, *CORPORA]:
        assert re.search(rf"^\| \[?`{entry}`", page, re.MULTILINE), entry


@pytest.mark.parametrize("entry", [*SCORES, *NORMALIZERS])
def test_every_score_and_normalizer_has_a_section(entry):
    page = (ROOT / "docs" / "attention.md").read_text()
    assert re.search(rf"^### `?{entry}`?\b", page, re.MULTILINE)


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
def test_every_model_task_and_corpus_has_a_page(entry, page):
    assert entry in (ROOT / page).read_text()


def test_every_catalogue_entry_is_made_by_something_that_exists():
    for piece in {**SCORES, **NORMALIZERS}.values():
        module, _, thing = piece.implementation.partition(".")
        source = (ROOT / "src" / "regard" / "attention" / f"{module}.py").read_text()
        assert re.search(rf"^(class|def) {thing}\b", source, re.MULTILINE)
