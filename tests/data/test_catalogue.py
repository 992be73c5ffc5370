"""The catalogue is literal, light, and true."""

import subprocess
import sys
from importlib import import_module

from regard.data.catalogue import CORPORA
from regard.data.public.translation import TRANSLATION_DATASETS
from regard.data.synthetic.dates import LANGUAGES


def test_every_entry_exists():
    for entry in CORPORA.values():
        module, _, name = entry.class_path.rpartition(".")
        assert hasattr(import_module(f"regard.data.{module}"), name)
        assert all(entry)


def test_it_agrees_with_what_is_published():
    assert set(TRANSLATION_DATASETS) == {
        name
        for name, entry in CORPORA.items()
        if entry.class_path == "public.translation.PublicTranslation"
    }
    for name, publication in TRANSLATION_DATASETS.items():
        assert publication.license.startswith(CORPORA[name].license)
        assert all(language in CORPORA[name].languages for language in publication.languages)
    assert str(len(LANGUAGES)) in CORPORA["dates"].languages


def test_it_imports_nothing():
    code = (
        "import sys; import regard.data.catalogue;"
        "print(sorted({'torch', 'numpy', 'babel', 'rich', 'urllib.request'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
