"""TranslateSettings as TOML: complete, explained, and read back as they were."""

import tomllib
from types import NoneType
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from regard.config.data import DatesData, FilesData, MixData, NamedData, Portion, ReorderData
from regard.config.decode import Beam, Greedy, Sample
from regard.config.load import loads
from regard.config.model import EncDec, Luong, Rnmt, RnnSearch, Seq2Seq, Transformer
from regard.config.settings import TranslateSettings
from regard.config.table import Table
from regard.config.text import Text
from regard.config.train import (
    EITHER,
    Adadelta,
    Adam,
    AdamW,
    Constant,
    Cosine,
    InverseSqrt,
    Noam,
    Plateau,
    Sgd,
    TranslateTrain,
)
from regard.config.write import dumps

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
shares = st.floats(0, 1, exclude_max=True)
positives = st.integers(1, 10**6)
maybe = st.none() | positives

parts = st.one_of(
    st.builds(DatesData, size=positives, seed=positives, languages=st.just(("de", "ja"))),
    st.builds(ReorderData, order=st.sampled_from(["same", "far"]), fertility=shares),
    st.builds(
        FilesData,
        train=words | st.lists(words, min_size=1).map(tuple),
        dev=st.none() | words,
        format=st.sampled_from([None, "tsv", "jsonl"]),
        fields=st.dictionaries(words, words).map(
            lambda more: {**more, "source": "x.y", "target": "é"}
        ),
    ),
    st.builds(NamedData, name=st.sampled_from(["multi30k", "tatoeba"]), source=st.just("fr")),
)
portions = st.builds(Portion, weight=st.floats(1e-9, 1e9), data=parts)
data = parts | st.builds(MixData, parts=st.lists(portions, min_size=1, max_size=3).map(tuple))
models = st.one_of(
    st.builds(EncDec, dim=positives, dropout=shares),
    st.builds(Seq2Seq, reverse=st.booleans()),
    st.builds(RnnSearch, hidden_dim=maybe, score=st.sampled_from(["dot", "location"])),
    st.builds(Luong, window=st.sampled_from([None, "local_p"])),
    st.builds(Transformer, norm=st.sampled_from(["pre", "post"])),
    st.builds(Rnmt, layers=positives),
)
optimisers = st.sampled_from([Adam(), Sgd(momentum=0.9), Adadelta()]) | st.builds(
    AdamW, betas=st.tuples(shares, shares), eps=st.floats(1e-300, 1)
)
schedules = st.sampled_from([Constant(), Noam(), InverseSqrt(), Cosine(floor=0.1), Plateau()])
trains = st.builds(
    TranslateTrain,
    steps=st.integers(4000, 10**9),
    optimiser=optimisers,
    schedule=schedules,
    learning_rate=st.floats(1e-300, 1e300),
    clip=st.floats(0, 9),
    alignments=st.none() | words,
) | st.builds(TranslateTrain, epochs=positives, sentences_per_batch=positives)
decodes = st.sampled_from([Greedy(), Beam(width=9), Sample(top_p=0.5)])
texts = st.builds(Text, normalise=st.sampled_from([None, "NFC"]), size=st.integers(300, 9999))
everything = st.builds(
    TranslateSettings,
    seed=positives,
    data=data,
    text=texts,
    model=models,
    train=trains,
    decode=decodes,
)


@given(everything)
def test_what_was_written_is_read(settings):
    assert loads(dumps(settings)) == settings


def tables(settings):
    yield settings
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Table):
                yield from tables(one)


@given(everything)
def test_it_is_complete_and_explained(settings):
    """Every setting is there, set or not, with its help text above."""
    text = dumps(settings)
    for table in tables(settings):
        for name, field in type(table).model_fields.items():
            first = (field.description or type(table).__doc__ or "").split()[:3]
            assert f"# {' '.join(first)}" in text
            assert (
                f"\n{name} = " in text or f"\n# {name} = (not set)\n" in text or f"{name}]" in text
            )


def test_every_field_has_a_help_text():
    for table in Table.__subclasses__():
        for kind in (table, *table.__subclasses__()):
            assert kind.__doc__
            for name, field in kind.model_fields.items():
                assert name == "kind" or field.description, f"{kind.__name__}.{name}"
                assert not field.description or field.description[-1] in ".,"


def test_what_may_be_unset_is_so_by_default():
    """TOML has no null: what is left out has its default."""
    for table in Table.__subclasses__():
        for name, field in table.model_fields.items():
            if NoneType in get_args(field.annotation) and field.default is not None:
                assert name in EITHER, f"{table.__name__}.{name}"


def test_by_hand():
    text = dumps(TranslateSettings())
    assert text.startswith('# What the model is to do.\ntask = "translate"\n')
    assert "\n[train.optimiser]\n# Kingma & Ba 2015.\nkind = " in text
    assert "\n# patience = (not set)\n" in text
    assert max(map(len, text.splitlines())) < 140
    assert text == dumps(loads(text))
    assert tomllib.loads(text)["train"]["optimiser"]["betas"] == [0.9, 0.98]


def test_parts_of_a_mix():
    mix = MixData(parts=(Portion(data=DatesData()), Portion(weight=2.0, data=DatesData(size=5))))
    text = dumps(TranslateSettings(data=mix))
    assert text.count("[[data.parts]]") == text.count("[data.parts.data]") == 2
    assert loads(text).data == mix


def test_text_that_must_be_escaped():
    data = FilesData(train='a"b\\c\n\t\x00\x7f\u2028é', fields={"source": "s", "target": "a b"})
    assert loads(dumps(TranslateSettings(data=data))).data == data
