"""[data] of the settings becomes the corpus that it says."""

import pytest

from regard.config.load import loads
from regard.corpora.build import build
from regard.corpora.dates import Dates
from regard.corpora.files import Files
from regard.corpora.mix import Mix
from regard.corpora.named import Named
from regard.corpora.reorder import Reorder


def made(text):
    return build(loads(text).data)


def test_dates():
    corpus = made("[data]\nsize = 7\nseed = 3\nheld_out = 2\nlanguages = ['ja']")
    assert isinstance(corpus, Dates)
    same = Dates(7, seed=3, languages=["ja"], held_out=2)
    assert list(corpus.read("train")) == list(same.read("train"))
    assert len(list(corpus.read("dev"))) == 2


def test_named():
    corpus = made("[data]\nkind = 'named'\nname = 'multi30k'\nsource = 'fr'\ntarget = 'de'")
    assert isinstance(corpus, Named)
    assert (corpus.name, corpus.source, corpus.target) == ("multi30k", "fr", "de")
    with pytest.raises(ValueError, match="source must be one of en, de, fr, not 'xx'"):
        made("[data]\nkind = 'named'\nname = 'multi30k'\nsource = 'xx'")


def test_files_and_mix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("x\ty\tz\n")
    (tmp_path / "b.jsonl").write_text('{"en": "p", "de": "q"}\n')
    corpus = made("""
        [data]
        kind = "mix"
        seed = 4
        [[data.parts]]
        weight = 3
        [data.parts.data]
        kind = "files"
        train = "a.txt"
        format = "tsv"
        columns = ["target", "-", "source"]
        [[data.parts]]
        [data.parts.data]
        kind = "files"
        train = "b.jsonl"
        fields = { source = "de", target = "en" }
    """)
    assert isinstance(corpus, Mix)
    assert isinstance(corpus.corpora[0], Files)
    assert corpus.weights == (3.0, 1.0)
    assert corpus.seed == 4
    assert next(corpus.corpora[0].read("train")) == {"target": "x", "source": "z"}
    assert next(corpus.corpora[1].read("train")) == {"source": "q", "target": "p"}


def test_reorder():
    corpus = made(
        "[data]\nkind = 'reorder'\nsize = 7\nseed = 3\nheld_out = 2\norder = 'local'\nwords = 9\n"
        "shortest = 5\nlongest = 6\nfertility = 0.5"
    )
    assert isinstance(corpus, Reorder)
    same = Reorder(
        7, seed=3, held_out=2, order="local", words=9, shortest=5, longest=6, fertility=0.5
    )
    assert list(corpus.read("train")) == list(same.read("train"))
    assert len(list(corpus.read("dev"))) == 2
