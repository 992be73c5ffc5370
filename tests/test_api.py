"""The public names: frozen, lazy, documented, and with examples that run."""

import doctest
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

import regard
import regard.attention

README = Path(__file__).parents[1] / "README.md"
PUBLIC = [
    "Attention",
    "AttentionMap",
    "InputError",
    "MultiHead",
    "Prediction",
    "Run",
    "Task",
    "Trainer",
    "export_run",
    "fit",
    "import_run",
    "intervene",
    "load",
    "load_settings",
    "observe",
    "resolve_settings",
]
ATTENTION_PARTS = [
    *("Additive", "Attention", "Cosine", "Dot", "General", "LocationScore", "Mask", "Memory"),
    *("MultiHead", "PredictiveWindow", "ReinforceSampler", "Salience", "ScaledDot", "Score"),
    *("StraightThrough", "Trilinear", "causal", "entmax15", "local", "padding", "replace"),
    *("scale", "softmax", "sparsemax", "strictly_causal", "zero"),
]
WITHOUT_EXAMPLE = {"export_run", "causal", "strictly_causal"}  # examples of import_run and Mask
ALL = [(regard, name) for name in PUBLIC] + [(regard.attention, name) for name in ATTENTION_PARTS]


def test_public_names_are_frozen():
    assert regard.__all__ == PUBLIC
    assert dir(regard) == sorted([*PUBLIC, "__version__"])
    assert regard.attention.__all__ == dir(regard.attention) == ATTENTION_PARTS


@pytest.mark.parametrize("module", [regard, regard.attention])
def test_an_unknown_name_is_an_error(module):
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_import_is_lazy():
    code = (
        "import sys, regard, regard.attention; dir(regard); dir(regard.attention);"
        "print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def examples_of(module: ModuleType, name: str) -> list[doctest.DocTest]:
    """Return the examples in the docstring of a public name and of its methods."""
    item = getattr(module, name)
    home = import_module(item.__module__)
    tests = doctest.DocTestFinder().find(item, name, home, globs=dict(vars(home)))
    return [test for test in tests if test.examples]


@pytest.fixture(scope="module")
def numbers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example of `regard.fit` has run; the other examples use its run."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for test in examples_of(regard, "fit"):
            doctest.DebugRunner(verbose=False).run(test)
    return folder


@pytest.mark.parametrize(
    ("module", "name"), ALL, ids=lambda value: getattr(value, "__name__", value)
)
def test_examples_run(module, name, numbers_folder, monkeypatch):
    if name == "fit":
        return  # the fixture has run it
    monkeypatch.chdir(numbers_folder)
    examples = examples_of(module, name)
    assert examples or name in WITHOUT_EXAMPLE
    for test in examples:
        doctest.DebugRunner(verbose=False).run(test)


def test_public_names_are_documented():
    undocumented = [name for module, name in ALL if not getattr(module, name).__doc__]
    assert undocumented == []


def readme_example() -> str:
    """Return the first block of Python in README.md."""
    block = re.search(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1]


def test_readme_example_is_short_and_learns(tmp_path, monkeypatch, capsys):
    """It fits on a list of dicts, loads, predicts, scores, shows attention and exports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    source = readme_example()
    statements = compile(source, "README.md", "exec", flags=0x400).body  # 0x400: only the tree
    assert len(statements) <= 12
    exec(compile(source, "README.md", "exec"), {"__name__": "__main__"})  # noqa: S102
    prediction, scores = capsys.readouterr().out.strip().splitlines()[-2:]
    assert prediction == "positive"
    assert "'accuracy': 100.0" in scores
    assert (tmp_path / "map.html").stat().st_size > 10_000
    assert json.loads((tmp_path / "bert" / "config.json").read_text())["model_type"] == "bert"


def test_calls_leave_the_random_generator_alone(numbers_folder, monkeypatch):
    monkeypatch.chdir(numbers_folder)
    state = torch.get_rng_state()
    run = regard.load("runs/numbers")
    run("one two")
    run.attention("one two")
    run.score([{"source": "one two", "target": "1 2"}])
    assert torch.equal(torch.get_rng_state(), state)
