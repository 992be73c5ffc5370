"""The catalogue is literal, light, and true."""

import subprocess
import sys
from importlib import import_module

from regard.corpora.catalogue import CORPORA
from regard.corpora.dates import LANGUAGES
from regard.corpora.named import PUBLISHED


def test_every_entry_exists():
    for entry in CORPORA.values():
        module, _, name = entry.made_by.partition(".")
        assert hasattr(import_module(f"regard.corpora.{module}"), name)
        assert all(entry)


def test_it_agrees_with_what_is_published():
    assert set(PUBLISHED) == {n for n, entry in CORPORA.items() if entry.made_by == "named.Named"}
    for name, publication in PUBLISHED.items():
        assert publication.licence.startswith(CORPORA[name].licence)
        assert all(language in CORPORA[name].languages for language in publication.languages)
    assert str(len(LANGUAGES)) in CORPORA["dates"].languages


def test_it_imports_nothing():
    code = (
        "import sys; import regard.corpora.catalogue;"
        "print(sorted({'torch', 'numpy', 'babel', 'rich', 'urllib.request'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
