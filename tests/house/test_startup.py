"""`regard --help` and `regard predict` are quick, because they import nothing heavy in vain."""

import gc
import subprocess
import sys

import pytest

from regard.cli.app import build_app
from regard.run import Run
from regard.tasks.load import resolve_settings
from regard.text.train import train_tokenizer

MAX_MODULES = 250  # that `regard --help` imports; torch alone would bring more than a thousand
HEAVY = {"torch", "numpy", "pydantic", "rich", "matplotlib", "jaxtyping"}
# What a prediction does not need: other output than text, metrics, other engines and data.
UNUSED = {
    *("rich", "matplotlib", "babel", "sacrebleu", "lxml", "tabulate", "ctranslate2"),
    *("transformers", "sympy", "pandas", "pyarrow", "datasets", "onnx", "fastapi"),
}
UNUSED_MODULES = {"torch._dynamo", "torch._inductor", "regard.batch_prediction.file_prediction"}


def imported_by(*words: str, text: str = "") -> list[str]:
    """Return the modules that a command imports, by the interpreter's own record."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "regard", *words],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line]
    assert "regard.cli.app" in names
    return names


def packages(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_import_little(word):
    """A count of modules instead of seconds, which depend on the machine."""
    modules = imported_by(word)
    assert packages(modules) & HEAVY == set()
    assert len(modules) < MAX_MODULES


def test_list_imports_no_torch():
    assert packages(imported_by("list", "--json")) & {"torch", "numpy"} == set()


@pytest.mark.parametrize("kind", ["transformer", "rnnsearch"])
def test_a_prediction_imports_nothing_in_vain(kind, tmp_path):
    settings = resolve_settings(
        {
            "task": "translate",
            "data": {"kind": "files", "train": "pairs.tsv"},
            "model": {"kind": kind, "dim": 16},
            "decode": {"max_length": 4},
        }
    )
    text = train_tokenizer("words", ["one two"], 10)
    Run(settings, {"source": text, "target": text}).save(tmp_path)
    modules = imported_by("predict", str(tmp_path), text="one two\n")
    assert "regard.decoding.beam" in modules
    assert packages(modules) & UNUSED == set()
    assert set(modules) & UNUSED_MODULES == set()


def test_modules_are_not_examined_for_garbage():
    before = gc.get_freeze_count()
    build_app("predict")
    assert gc.isenabled()
    assert gc.get_freeze_count() > before
    gc.unfreeze()
