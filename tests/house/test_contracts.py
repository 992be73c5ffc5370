"""The import contracts hold, and each of them can break."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOW = "Packages import only downwards"
ALONE = "The neural half knows nothing of text, batching or config"
NO_TORCH = "Text, metrics, view, config and data run without torch"
APART = "Models never import each other"

# Wrong imports: a module to add, the module that it imports, and the contract that must notice.
WRONG_IMPORTS = [
    ("attention.wrong_flow", "layers", FLOW),
    ("layers.wrong_flow", "view.terminal", FLOW),
    ("view.wrong_task", "tasks.base", FLOW),
    ("view.wrong_decoding", "decoding", FLOW),
    ("tasks.wrong_run", "run", FLOW),
    ("tasks.translate.wrong_training", "training.trainer", FLOW),
    ("training.wrong_explain", "explain", FLOW),
    ("explain.wrong_convert", "convert", FLOW),
    ("layers.wrong_text", "text", ALONE),
    ("attention.wrong_config", "config", ALONE),
    ("view.wrong_torch", "torch", NO_TORCH),
    ("view.wrong_lazy_torch", "torch", NO_TORCH),
    ("metrics.wrong_torch", "torch", NO_TORCH),
    ("models.wrong_a", "models.wrong_b", APART),
]
LAZY = {"view.wrong_lazy_torch"}  # imports inside a function


def lint(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [Path(sysconfig.get_path("scripts")) / "lint-imports", "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_all_contracts_are_kept():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout
    assert all(f"{contract} KEPT" in done.stdout for contract in (FLOW, ALONE, NO_TORCH, APART))


def full_name(module: str) -> str:
    return module if module == "torch" else f"regard.{module}"


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the sources, without wrong imports."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    return folder


def test_wrong_imports_break_their_contracts(copy):
    """All are planted at once; each must be reported by its own contract."""
    for module, imported, _ in WRONG_IMPORTS:
        path = copy / "src" / "regard" / f"{module.replace('.', '/')}.py"
        statement = f"import {full_name(imported)}\n"
        path.write_text(f"def f():\n    {statement}" if module in LAZY else statement)
    (copy / "src/regard/models/wrong_b.py").write_text("")
    (copy / "src/regard/view/wrong_indirect.py").write_text("import regard.layers.wrong_torch\n")
    (copy / "src/regard/layers/wrong_torch.py").write_text("import torch\n")
    done = lint(copy)
    assert done.returncode == 1
    sections = re.split(r"^(.+)\n-+$", done.stdout, flags=re.MULTILINE)
    reports = dict(zip(sections[1::2], sections[2::2], strict=True))
    for module, imported, contract in WRONG_IMPORTS:
        chain = f"{full_name(module)} -> {full_name(imported)} "
        assert chain in reports[contract], chain
    assert "regard.view.wrong_indirect -> regard.layers.wrong_torch" in reports[NO_TORCH]


def test_a_new_package_needs_a_place(copy):
    (copy / "src/regard/utils").mkdir()
    (copy / "src/regard/utils/__init__.py").write_text("")
    done = lint(copy)
    assert done.returncode == 1
    assert f"{FLOW} BROKEN" in done.stdout
    assert "utils" in done.stdout
