"""Tests that the [data] table of settings builds the right corpus."""

import pytest

from regard.data.build import build_corpus
from regard.data.formats.text_pairs import TextPairFiles
from regard.data.mix import MixedCorpus
from regard.data.public.translation import PublicTranslation
from regard.data.synthetic.dates import Dates
from regard.data.synthetic.reorder import ReorderedSentences
from regard.tasks.load import parse_settings


def corpus_from_toml(text):
    return build_corpus(parse_settings(text).data)


def test_dates():
    corpus = corpus_from_toml("[data]\nsize = 7\nseed = 3\nheld_out = 2\nlanguages = ['ja']")
    assert isinstance(corpus, Dates)
    expected = Dates(7, seed=3, languages=["ja"], held_out=2)
    assert list(corpus.read("train")) == list(expected.read("train"))
    assert len(list(corpus.read("dev"))) == 2


def test_public_dataset():
    corpus = corpus_from_toml(
        "[data]\nkind = 'public'\nname = 'multi30k'\nsource = 'fr'\ntarget = 'de'"
    )
    assert isinstance(corpus, PublicTranslation)
    assert (corpus.name, corpus.source, corpus.target) == ("multi30k", "fr", "de")
    with pytest.raises(ValueError, match="source must be one of en, de, fr, not 'xx'"):
        corpus_from_toml("[data]\nkind = 'public'\nname = 'multi30k'\nsource = 'xx'")


def test_files_and_mix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("x\ty\tz\n")
    (tmp_path / "b.jsonl").write_text('{"en": "p", "de": "q"}\n')
    corpus = corpus_from_toml("""
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
    assert isinstance(corpus, MixedCorpus)
    assert isinstance(corpus.corpora[0], TextPairFiles)
    assert corpus.weights == (3.0, 1.0)
    assert corpus.seed == 4
    assert next(corpus.corpora[0].read("train")) == {"target": "x", "source": "z"}
    assert next(corpus.corpora[1].read("train")) == {"source": "q", "target": "p"}


def test_reorder():
    corpus = corpus_from_toml(
        "[data]\nkind = 'reorder'\nsize = 7\nseed = 3\nheld_out = 2\norder = 'local'\n"
        "vocabulary_size = 9\nmin_words = 5\nmax_words = 6\nfertility = 0.5"
    )
    assert isinstance(corpus, ReorderedSentences)
    expected = ReorderedSentences(
        7,
        seed=3,
        held_out=2,
        order="local",
        vocabulary_size=9,
        min_words=5,
        max_words=6,
        fertility=0.5,
    )
    assert list(corpus.read("train")) == list(expected.read("train"))
    assert len(list(corpus.read("dev"))) == 2
