"""No module outside `tasks/` knows a task; commands work for any task."""

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from regard.tasks.catalogue import TASKS

PACKAGE = Path(__file__).parents[2] / "src" / "regard"
FILES = {
    str(file.relative_to(PACKAGE)): file.read_text()
    for file in sorted(PACKAGE.rglob("*.py"))
    if file.relative_to(PACKAGE).parts[0] != "tasks"
}
PACKAGES = {entry.package.rpartition(".")[2] for entry in TASKS.values()}
NAMES = {*TASKS, *PACKAGES}
# Strings that are equal to the name of a task and mean something else there.
OTHER_MEANINGS = {
    "image": {"config/data", "data", "view", "serve"},  # field of a record, picture of a map
    "caption": {"config/data", "data", "cli/check.py"},  # field of a record
    "copy": {"config/data/bits.py", "data/catalogue.py"},  # kind of data
    "recall": {"config/data/bits.py", "data/catalogue.py", "cli/align.py", "metrics"},  # a metric
    "bandit": {"config/data/environments.py", "data"},  # kind of data
    "music": {"data/catalogue.py"},  # kind of a corpus
    "bits": {"data/catalogue.py", "cli/heads.py"},  # kind of a corpus; unit of entropy
    "language": {"data/synthetic/dates.py", "serve"},  # of dates; of a text
    "chat": {"cli/app.py"},  # name of a command
    "pretrain": {"convert"},  # setting of the model bert
    "tag": {"config/errors.py"},  # key of an error of pydantic
    "fold": {"cli/list.py"},  # option of a table of rich
}
# The setting `image` of tasks on images, which an imported ViT brings along.
OTHER_MEANINGS["image"] |= {"convert"}
COMMANDS = ["look", "predict", "score", "check", "compare"]


def is_allowed(name: str, file: str) -> bool:
    return any(f"{file}/".startswith(f"{place}/") for place in OTHER_MEANINGS.get(name, ()))


def task_classes() -> set[str]:
    """Return the names of the classes that the folders of tasks define."""
    classes = set[str]()
    for package in PACKAGES:
        for file in (PACKAGE / "tasks" / package).glob("*.py"):
            tree = ast.parse(file.read_text())
            classes |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return classes


CLASSES = task_classes()


def task_knowledge(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a module knows of a task: (kind, name)."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Constant(value=str() as value):
                if value in NAMES:
                    yield "string", value
                elif re.match(rf"regard\.tasks\.({'|'.join(PACKAGES)})\b", value):
                    yield "import", value
            case ast.Import(names=names):
                yield from (("import", n.name) for n in names if is_task_module(n.name))
            case ast.ImportFrom(module=str() as module, names=names):
                modules = [module, *(f"{module}.{name.name}" for name in names)]
                yield from (("import", name) for name in modules if is_task_module(name))
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if name in CLASSES:
                    yield "class", name
            case ast.Compare():
                yield from (("comparison", name) for name in compared_tasks(node))


def is_task_module(module: str) -> bool:
    parts = module.split(".")
    return parts[:2] == ["regard", "tasks"] and len(parts) > 2 and parts[2] in PACKAGES


def compared_tasks(node: ast.Compare) -> Iterator[str]:
    """Yield the names of tasks in a comparison with `….task` or `….name`."""
    sides = [node.left, *node.comparators]
    if any(isinstance(side, ast.Attribute) and side.attr in ("task", "name") for side in sides):
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and part.value in NAMES:
                yield str(part.value)


def test_no_module_outside_tasks_names_a_task():
    known = {
        f"{file}: {kind} {name}"
        for file, text in FILES.items()
        for kind, name in task_knowledge(text)
        if kind != "string" or not is_allowed(name, file)
    }
    assert known == set()


def test_exceptions_are_needed():
    """Each allowed word stands in each allowed place."""
    for name, places in OTHER_MEANINGS.items():
        for place in places:
            texts = [text for file, text in FILES.items() if f"{file}/".startswith(f"{place}/")]
            assert any(("string", name) in task_knowledge(text) for text in texts), (name, place)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_know_no_task(command):
    """Neither code nor help texts name a task, and no type of a task or run is asked for."""
    module = import_module(f"regard.cli.{command}")
    tree = ast.parse(inspect.getsource(module))
    ordinary = {"image", "answer", "caption"}  # words of help texts and reports
    words = {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in re.findall(r"\w+", node.value)
    }
    assert words & (set(TASKS) - ordinary) == set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("isinstance", "issubclass"):
            checked, kind = call.args
            assert not re.search(r"\b(task|run|settings)\w*$", ast.unparse(checked)), command
            assert not re.search(r"Task|Run|Settings|Prediction", ast.unparse(kind)), command


def test_planted_knowledge_is_found():
    assert ("import", "regard.tasks.tag.task") in task_knowledge("import regard.tasks.tag.task")
    assert ("import", "regard.tasks.tag") in task_knowledge("from regard.tasks import tag")
    lazy = 'import_module("regard.tasks.tag.task")'
    assert ("import", "regard.tasks.tag.task") in task_knowledge(lazy)
    assert ("string", "translate") in task_knowledge('x = "translate"')
    assert ("class", "TagTask") in task_knowledge("isinstance(task, base.TagTask)")
    assert ("comparison", "image") in task_knowledge('if run.task.name == "image": ...')
    assert ("comparison", "copy") in task_knowledge('settings.task in ("copy", "recall")')
    assert not list(task_knowledge('import regard.tasks.base\nx = record["text"]'))
    assert "TagTask" in CLASSES
