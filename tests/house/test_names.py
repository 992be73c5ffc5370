"""Names and prose follow the rules of CONTRIBUTING.md: plain words, one meaning each, American."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "regard"
TEXTS = {str(file.relative_to(PACKAGE)): file.read_text() for file in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(text) for name, text in TEXTS.items()}
DOCUMENTS = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
# fmt: off
IRREGULAR = {
    "told", "said", "made", "found", "seen", "known", "written", "begun", "gone", "lost",
    "drawn", "shown", "given", "taken", "kept", "held", "heard", "meant", "spoken", "thought",
    "built", "sent", "left", "felt", "brought", "bought", "led", "paid", "run", "sung",
    "worn", "born", "done",
}
# fmt: on
NOT_PARTICIPLES = {"embed", "shed", "wed", "bed", "sled"}
# Participles that transform their first argument and nothing else, as `sorted` does.
TRANSFORMS_AT_MOST = 0.015  # of all functions; well-kept packages have 0 to 1.2 %
VAGUE_NAMES = {
    *("told", "said", "asked", "looked", "lived", "heard", "again", "further", "odd", "whole"),
    *("settled", "worn_by", "go_on", "told_as", "told_back", "who", "what_if"),
}
FILLERS = {"found", "one", "some", "told", "seen", "said", "asked", "heard", "things", "stuff"}
FILLER_LINES = 10  # a shorter function may use them
VAGUE_MODULES = {"more", "under", "whole", "made", "whatif", "various", "things"}
VAGUE_BEGINNINGS = re.compile(r"(Of|What|How|Where|The same)\b")
MAX_ANY = 149  # uses of `Any` in the package
BRITISH = re.compile(
    r"((token|normal|optim|summar|initial|serial|symmetr|recogn|organ|maxim|minim|visual|penal"
    r"|memor|random|general|character)is(e|ed|er|ers|es|ing|ation|ations)\b|colour|behaviour"
    r"|neighbour|labell|modell|\bcentre|licence|favour|analys(e|ed|ing)\b|learnt)",
    re.IGNORECASE,
)
# Words of synthetic data, which are no prose of ours.
DATA_WORDS = {("data/synthetic/digits.py", "centre"), ("data/synthetic/facts.py", "colour")}
# Modules that may stand in several packages, because all of them are about one subject.
SAME_SUBJECT = {
    *("__init__", "base", "catalogue", "build", "protocols"),  # parts of a package
    *("task", "settings", "view", "check", "comparison"),  # parts of a task, and its command
    *("model", "inputs", "prediction"),  # parts of a task
    *("faithfulness", "heads", "train", "progress"),  # a command or a bar, and what it runs
    *("alignment", "bits", "caption", "dialogues", "environments", "images", "music"),  # data,
    *("piano_rolls", "proteins", "questions", "seq2seq", "summaries", "tagged_texts"),  # with its
    *("text_pairs", "texts", "translation"),  # settings, formats, models and metrics
    *("run", "errors"),  # the class, and its conversion; the class, and its messages
}


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield every function and method with its file; dunders are Python's own names."""
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                yield file, node


def chosen_names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that the code itself chooses."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def local_names(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the parameters and locals of a function."""
    for node in ast.walk(function):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name


def is_participle(name: str) -> bool:
    word = name.strip("_")
    if "_" in word or word in NOT_PARTICIPLES:
        return False
    return word in IRREGULAR or bool(re.fullmatch(r"[a-z]+[^e]ed|[a-z]+ied", word))


def is_long(function: ast.FunctionDef) -> bool:
    return (function.end_lineno or function.lineno) - function.lineno + 1 > FILLER_LINES


def fillers(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (function, name) for names that say nothing, in functions that are not short."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and is_long(node):
            yield from ((node.name, name) for name in {*local_names(node)} & FILLERS)


def docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            yield ast.get_docstring(node) or ""


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def definitions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the classes and type aliases of a module as (name, definition)."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield name, f"class at line {node.lineno}"
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                is_type_variable = ast.unparse(value).startswith("TypeVar(")
                if re.match(r"[A-Z][a-z]", name) and not is_type_variable:
                    yield name, ast.unparse(value)


def count_any(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.NAME and token.string == "Any" for token in tokens)


def test_functions_are_not_bare_participles():
    every = [(file, node.name) for file, node in functions()]
    bare = [f"{file}: {name}" for file, name in every if is_participle(name)]
    assert len(bare) <= TRANSFORMS_AT_MOST * len(every), bare


def test_no_name_is_vague():
    vague = {
        f"{file}: {name}"
        for file, tree in TREES.items()
        for name in chosen_names(tree)
        if name.strip("_") in VAGUE_NAMES
    }
    assert vague == set()
    assert {Path(file).stem for file in TREES} & VAGUE_MODULES == set()


def test_locals_say_what_they_are():
    assert {
        f"{file}: {name} in {function}"
        for file, tree in TREES.items()
        for function, name in fillers(tree)
    } == set()


def test_spelling_of_the_package_is_american():
    british = {
        (file, match[0])
        for file, tree in TREES.items()
        for text in [*chosen_names(tree), *strings(tree)]
        for match in BRITISH.finditer(text)
    }
    assert british == DATA_WORDS


def test_spelling_of_the_documents_is_american():
    british = {
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in DOCUMENTS
        for match in BRITISH.finditer(file.read_text())
    }
    assert british == set()


def test_docstrings_begin_with_a_verb_or_a_noun():
    assert {
        f"{file}: {text.splitlines()[0]}"
        for file, tree in TREES.items()
        for text in docstrings(tree)
        if VAGUE_BEGINNINGS.match(text)
    } == set()


def test_a_class_or_type_has_one_meaning():
    places = defaultdict(dict)
    for file, tree in TREES.items():
        for name, definition in definitions(tree):
            is_class = definition.startswith("class at")
            places[name][f"{file}: {definition}" if is_class else definition] = file
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_module_has_one_meaning():
    names = [Path(file).stem for file in TREES]
    assert {name for name in names if names.count(name) > 1} == SAME_SUBJECT


def test_any_is_rare():
    assert sum(map(count_any, TEXTS.values())) <= MAX_ANY


def test_the_rules_find_what_they_forbid():
    assert is_participle("settled")
    assert is_participle("_told")
    assert not is_participle("embed")
    assert not is_participle("clip_gradients")
    for word in ("train_tokeniser", "colour", "optimise", "Normalisation", "centre", "learnt"):
        assert BRITISH.search(word), word
    for word in ("optimism", "normal", "analysis", "concentrated", "summarize", "color"):
        assert not BRITISH.search(word), word
    long = "def f(heard):\n    found = 1\n" + "    x = 1\n" * FILLER_LINES
    assert set(fillers(ast.parse(long))) == {("f", "found"), ("f", "heard")}
    assert list(fillers(ast.parse("def f():\n    found = 1"))) == []
    assert VAGUE_BEGINNINGS.match("Of texts with classes.")
    assert not VAGUE_BEGINNINGS.match("Offset of a token.")
    module = ast.parse("Name = str\nT = TypeVar('T')\nLIMIT = 3\nclass A: ...")
    assert dict(definitions(module)) == {"Name": "str", "A": "class at line 4"}
    assert count_any("from typing import Any\nx: Any = 'Any'  # Any") == 2
