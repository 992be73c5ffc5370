"""Tests of the catalogue of corpora: it imports nothing and agrees with the code."""

import subprocess
import sys
from importlib import import_module

import pytest

from regard.data.catalogue import CORPORA
from regard.data.public.translation import TRANSLATION_DATASETS
from regard.data.synthetic.dates import LANGUAGES
from regard.tasks.catalogue import TASKS
from regard.tasks.load import resolve_settings


def test_every_entry_exists():
    for entry in CORPORA.values():
        module, _, name = entry.class_path.rpartition(".")
        assert hasattr(import_module(f"regard.data.{module}"), name)
        assert all(entry)


def test_catalogue_agrees_with_the_datasets():
    assert set(TRANSLATION_DATASETS) == {
        name
        for name, entry in CORPORA.items()
        if entry.class_path == "public.translation.PublicTranslation"
    }
    for name, dataset in TRANSLATION_DATASETS.items():
        assert dataset.license.startswith(CORPORA[name].license)
        assert all(language in CORPORA[name].languages for language in dataset.languages)
    assert str(len(LANGUAGES)) in CORPORA["dates"].languages


def test_catalogue_imports_nothing():
    code = (
        "import sys; import regard.data.catalogue;"
        "print(sorted({'torch', 'numpy', 'babel', 'rich', 'urllib.request'} & set(sys.modules)))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip() == "[]"


def test_a_public_name_as_a_kind_gets_a_hint():
    """Each public corpus belongs to a task, whose error names the two settings."""
    public = {name for name, entry in CORPORA.items() if ".Public" in entry.class_path}
    hinted = set()
    for task in TASKS:
        for name in public:
            with pytest.raises(ValueError) as error:
                resolve_settings({"task": task, "data": {"kind": name}})
            if f'data.kind = "public" and data.name = "{name}"' in str(error.value):
                hinted.add(name)
    assert hinted == public
