"""Habits that a machine can check: sizes, signatures, names, and what must never be called."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from regard.tasks.catalogue import TASKS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "regard"
SOURCES = sorted(PACKAGE.rglob("*.py"))

FILE_LINES, FUNCTION_LINES = 400, 60
UNSAFE_NAMES = {"eval", "exec", "__import__"}
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"torch.load", "numpy.load", "np.load", "yaml.load", "os.system", "os.popen"}
# Each of these has one name in our glossary: dim, hidden_dim, heads, source, target, attention.
OTHER_NAMES = {
    *("d_model", "n_embd", "embed_dim", "hidden_size", "model_size", "n_head", "n_heads"),
    *("num_heads", "num_layers", "n_layers", "attn", "attns", "att", "src", "trg", "tgt"),
}
NO_ROOM = {"utils", "util", "helpers", "helper", "constants", "common", "misc"}

MIN_TIME_LIMIT = 600  # seconds; a busy machine may take long, and a test that hangs must end
WALL_CLOCK = "perf_counter"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str) -> set[int]:
    """The numbers of the lines that hold code: no docstrings, comments or empty lines."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):  # a docstring, or one after a field
                lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def long_functions(text: str, limit: int) -> Iterator[tuple[str, int]]:
    lines = code_lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function):
            size = sum(node.lineno <= line <= (node.end_lineno or 0) for line in lines)
            if size > limit:
                yield node.name, size


def time_limits(text: str) -> Iterator[str]:
    """Yield what would fail on a busy machine: short time limits, and measured time."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.keyword(arg="timeout", value=ast.Constant(value=int() | float() as limit)):
                if limit < MIN_TIME_LIMIT:
                    yield f"timeout={limit}"
            case ast.Attribute(attr=name) | ast.Name(id=name) if name == WALL_CLOCK:
                yield name


def unsafe(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name.partition(".")[0] in UNSAFE_MODULES)
            case ast.ImportFrom(module=str() as module):
                if module.partition(".")[0] in UNSAFE_MODULES:
                    yield module
                whole = {f"{module}.{name.name}" for name in node.names}
                yield from whole & UNSAFE_CALLS
            case ast.Call(func=ast.Name(id=name)) if name in UNSAFE_NAMES:
                yield name
            case ast.Call(func=ast.Attribute()) if ast.unparse(node.func) in UNSAFE_CALLS:
                yield ast.unparse(node.func)


def open_signatures(text: str) -> Iterator[str]:
    """Public functions that take anything at all by `**kwargs`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function) and node.args.kwarg and not node.name.startswith("_"):
            yield node.name
        if isinstance(node, Function) and node.args.kwarg and node.name == "__init__":
            yield node.name


def given_names(text: str) -> Iterator[str]:
    """Names that this code chooses itself: of functions, classes, arguments, variables, fields."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def imported_modules(text: str) -> set[str]:
    """The modules of an import statement anywhere in a text."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                modules |= {name.name for name in names}
            case ast.ImportFrom(module=str() as module, names=names):
                modules |= {module, *(f"{module}.{name.name}" for name in names)}
    return modules


def task_imports(text: str, tasks: set[str]) -> set[str]:
    """The packages of tasks that a text imports."""
    parts = [module.split(".") for module in imported_modules(text)]
    return {part[2] for part in parts if part[:2] == ["regard", "tasks"] and len(part) > 2} & tasks


TEXTS = {str(file.relative_to(PACKAGE)): file.read_text() for file in SOURCES}


def offenders(rule: Callable[[str], Iterable[object]]) -> dict[str, list[object]]:
    """Return what a rule finds, by file."""
    found = {name: list(rule(text)) for name, text in TEXTS.items()}
    return {name: things for name, things in found.items() if things}


def test_files_are_short():
    sizes = {name: len(code_lines(text)) for name, text in TEXTS.items()}
    assert {name: size for name, size in sizes.items() if size > FILE_LINES} == {}


def test_functions_are_short():
    assert offenders(lambda text: long_functions(text, FUNCTION_LINES)) == {}


def test_nothing_unsafe_is_called():
    assert offenders(unsafe) == {}


def test_signatures_are_closed():
    assert offenders(open_signatures) == {}


def test_annotations_are_evaluated():
    """Postponed annotations would turn the shape checks off."""
    postponed = re.compile(r"^from __future__ import .*annotations", re.MULTILINE)
    assert offenders(postponed.findall) == {}


def test_faults_of_the_user_have_one_class():
    """The command line shows an InputError as one line, and takes any other error for a bug."""
    assert offenders(re.compile(r"raise ValueError").findall) == {}


def test_names_are_of_the_glossary():
    assert offenders(lambda text: set(given_names(text)) & OTHER_NAMES) == {}
    parts = {part for name in TEXTS for part in Path(name).with_suffix("").parts}
    assert parts & NO_ROOM == set()


TASK_PACKAGES = {entry.package.rpartition(".")[2] for entry in TASKS.values()}
# Settings stop at these files of a task; the others take flat parameters.
SETTINGS_READERS = {"build", "check", "comparison", "settings"}


def test_tasks_never_import_each_other():
    found = {
        name: others
        for name, text in TEXTS.items()
        if name.startswith("tasks/")
        and (others := task_imports(text, TASK_PACKAGES) - {Path(name).parts[1]})
    }
    assert found == {}


def test_only_builders_of_tasks_read_settings():
    found = {}
    for name, text in TEXTS.items():
        parts = Path(name).with_suffix("").parts
        if parts[0] == "tasks" and parts[1] in TASK_PACKAGES and parts[-1] not in SETTINGS_READERS:
            modules = imported_modules(text)
            if wrong := {m for m in modules if m.startswith("regard.config") or "settings" in m}:
                found[name] = wrong
    assert found == {}


@pytest.mark.parametrize("package", sorted(TASK_PACKAGES))
def test_a_task_is_one_folder(package):
    folder = PACKAGE / "tasks" / package
    assert {"__init__.py", "settings.py", "build.py"} <= {file.name for file in folder.iterdir()}
    builder = ast.parse((folder / "build.py").read_text())
    assert any(
        isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "BUILDER" for n in builder.body
    )


def test_files_say_what_they_are():
    silent = [
        name for name, text in TEXTS.items() if text and not ast.get_docstring(ast.parse(text))
    ]
    assert silent == []


def test_lines_of_code_are_counted_right():
    doc, code = '"""Doc\nstring."""\n\n# comment\n', 'x = """a\nb"""\n\n'
    function = 'def f():\n    """Doc."""\n    return 1\n'
    assert code_lines(doc + code + function) == {5, 6, 8, 10}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "from torch import load",
        "eval('1')",
        "import yaml\nyaml.load('x')",
    ],
)
def test_unsafe_is_found(text):
    assert list(unsafe(text))


def test_tests_do_not_depend_on_speed():
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = {str(path): list(time_limits(path.read_text())) for path in paths}
    assert not {path: limits for path, limits in found.items() if limits}


def test_the_rules_find_what_they_forbid():
    assert list(time_limits("run(timeout=60)\nt = time.perf_counter()")) == [
        "timeout=60",
        "perf_counter",
    ]
    assert list(time_limits("run(timeout=600)\nrun(timeout=None)")) == []
    assert list(open_signatures("def f(**kwargs): ...")) == ["f"]
    assert list(open_signatures("class C:\n    def __init__(self, **kwargs): ...")) == ["__init__"]
    assert list(open_signatures("def _f(**kwargs): ...")) == []
    assert list(long_functions("def f():\n" + "    x = 1\n" * 60, 60)) == [("f", 61)]
    assert set(given_names("def f(d_model):\n    self.attn = src = 1")) >= {
        "d_model",
        "attn",
        "src",
    }
    assert list(unsafe("model.eval()")) == []
    assert task_imports("from regard.tasks.tag.task import T", {"tag", "chat"}) == {"tag"}
    assert task_imports("def f():\n    from regard.tasks import chat", {"tag", "chat"}) == {"chat"}
