"""The import contracts hold, and each of them can break."""

import os
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

# What would be wrong: files to add, and the contract that must notice.
WRONGS = [
    ({"attention/wrong.py": "import regard.layers"}, FLOW),
    ({"layers/wrong.py": "import regard.view.terminal"}, FLOW),
    ({"view/wrong.py": "import regard.tasks.base"}, FLOW),
    ({"view/wrong.py": "import regard.decoding"}, FLOW),
    ({"tasks/wrong.py": "import regard.run"}, FLOW),
    ({"tasks/translate/wrong.py": "from regard.training.trainer import Trainer"}, FLOW),
    ({"training/wrong.py": "import regard.explain"}, FLOW),
    ({"explain/wrong.py": "import regard.convert"}, FLOW),
    ({"utils/__init__.py": ""}, FLOW),
    ({"layers/wrong.py": "import regard.text"}, ALONE),
    ({"attention/wrong.py": "from regard.config import x"}, ALONE),
    ({"view/wrong.py": "import torch"}, NO_TORCH),
    ({"view/wrong.py": "def f():\n    import torch.nn"}, NO_TORCH),
    ({"layers/wrong.py": "import torch", "view/wrong.py": "import regard.layers.wrong"}, NO_TORCH),
    ({"metrics/__init__.py": "import torch"}, NO_TORCH),
    (
        {"models/__init__.py": "", "models/a.py": "import regard.models.b", "models/b.py": ""},
        APART,
    ),
]


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


@pytest.mark.parametrize(("files", "contract"), WRONGS)
def test_a_wrong_import_breaks_its_contract(files, contract, tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name, text in files.items():
        place = tmp_path / "src" / "regard" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text + "\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    assert f"{contract} BROKEN" in done.stdout, done.stdout
