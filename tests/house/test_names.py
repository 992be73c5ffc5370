"""Names follow the rules of CONTRIBUTING.md: plain verbs and nouns, one meaning each, American."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "regard"
TREES = {
    str(file.relative_to(PACKAGE)): ast.parse(file.read_text())
    for file in sorted(PACKAGE.rglob("*.py"))
}
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
VAGUE_MODULES = {"more", "under", "whole", "made", "whatif", "various", "things"}
BRITISH = re.compile(
    r"(tokenis|normalis|optimis|summaris|initialis|serialis|symmetris|recognis|organis|maximis"
    r"|minimis|visualis|penalis|memoris|randomis|generalis|characteris|colour|behaviour|neighbour"
    r"|labell|modell|centre|licence|favour|analys(e|ing)\b|learnt)",
    re.IGNORECASE,
)


def functions() -> Iterator[tuple[str, str]]:
    """Every function and method as (file, name); dunders are Python's own names."""
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                yield file, node.name


def identifiers() -> Iterator[tuple[str, str]]:
    """Every name that the code itself chooses."""
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    yield file, name
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    yield file, name


def is_participle(name: str) -> bool:
    word = name.strip("_")
    if "_" in word or word in NOT_PARTICIPLES:
        return False
    return word in IRREGULAR or bool(re.fullmatch(r"[a-z]+[^e]ed|[a-z]+ied", word))


def test_functions_are_not_bare_participles():
    every = list(functions())
    bare = [f"{file}: {name}" for file, name in every if is_participle(name)]
    assert len(bare) <= TRANSFORMS_AT_MOST * len(every), bare


def test_no_name_is_vague():
    assert [f"{file}: {name}" for file, name in functions() if name.strip("_") in VAGUE_NAMES] == []
    modules = {Path(file).stem for file in TREES}
    assert modules & VAGUE_MODULES == set()


def test_spelling_is_american():
    assert sorted({f"{file}: {name}" for file, name in identifiers() if BRITISH.search(name)}) == []


def test_a_class_name_has_one_meaning():
    places = defaultdict(list)
    for file, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(file)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_the_rules_find_what_they_forbid():
    assert is_participle("settled")
    assert is_participle("_told")
    assert not is_participle("embed")
    assert not is_participle("clip_gradients")
    assert BRITISH.search("train_tokeniser")
