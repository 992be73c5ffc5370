"""The public names of the package."""

import subprocess
import sys

import pytest

import regard

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


def test_public_names_are_frozen():
    assert regard.__all__ == PUBLIC
    assert dir(regard) == sorted([*PUBLIC, "__version__"])


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist_and_are_documented(name):
    assert getattr(regard, name).__doc__


def test_an_unknown_name_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        regard.nothing  # noqa: B018


def test_import_is_lazy():
    code = "import sys, regard; dir(regard); print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_run_is_trained_loaded_and_asked(tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("ab\tba\nabc\tcba\n")
    settings = regard.resolve_settings(
        {
            "data": {"kind": "files", "train": str(pairs), "dev": str(pairs)},
            "model": {"kind": "rnnsearch", "dim": 8},
            "train": {"steps": 2},
            "decode": {"kind": "greedy"},
        }
    )
    events = list(regard.Trainer(settings, tmp_path / "run"))
    assert [event.number for event in events] == [1, 2]
    run = regard.load(str(tmp_path / "run"))
    assert run.predict(["ab", {"source": "abc"}])[0] == run("ab")
    assert run.score("dev")["sentences"] == 2
    assert run.attention("ab").layers
