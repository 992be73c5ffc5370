"""TranslateSettings as TOML: complete, explained, and read back as they were."""

import tomllib
from types import NoneType
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from regard.config.base import Config
from regard.config.data.text_pairs import (
    DatesDataConfig,
    FilesDataConfig,
    MixDataConfig,
    MixPartConfig,
    PublicTranslationDataConfig,
    ReorderDataConfig,
)
from regard.config.decode import BeamConfig, GreedyConfig, SampleConfig
from regard.config.dump import dumps
from regard.config.models.seq2seq import (
    EncDecConfig,
    LuongConfig,
    RnmtConfig,
    RnnSearchConfig,
    Seq2SeqConfig,
    TransformerConfig,
)
from regard.config.text import TextConfig
from regard.config.train import (
    ALTERNATIVES,
    AdadeltaConfig,
    AdamConfig,
    AdamWConfig,
    ConstantScheduleConfig,
    CosineScheduleConfig,
    InverseSqrtScheduleConfig,
    NoamScheduleConfig,
    PlateauScheduleConfig,
    SgdConfig,
)
from regard.tasks.load import parse_settings
from regard.tasks.translate.settings import TranslateSettings, TranslateTrainConfig

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
shares = st.floats(0, 1, exclude_max=True)
positives = st.integers(1, 10**6)
maybe = st.none() | positives

parts = st.one_of(
    st.builds(DatesDataConfig, size=positives, seed=positives, languages=st.just(("de", "ja"))),
    st.builds(ReorderDataConfig, order=st.sampled_from(["same", "far"]), fertility=shares),
    st.builds(
        FilesDataConfig,
        train=words | st.lists(words, min_size=1).map(tuple),
        dev=st.none() | words,
        format=st.sampled_from([None, "tsv", "jsonl"]),
        fields=st.dictionaries(words, words).map(
            lambda more: {**more, "source": "x.y", "target": "é"}
        ),
    ),
    st.builds(
        PublicTranslationDataConfig,
        name=st.sampled_from(["multi30k", "tatoeba"]),
        source=st.just("fr"),
    ),
)
portions = st.builds(MixPartConfig, weight=st.floats(1e-9, 1e9), data=parts)
data = parts | st.builds(MixDataConfig, parts=st.lists(portions, min_size=1, max_size=3).map(tuple))
models = st.one_of(
    st.builds(EncDecConfig, dim=positives, dropout=shares),
    st.builds(Seq2SeqConfig, reverse=st.booleans()),
    st.builds(RnnSearchConfig, hidden_dim=maybe, score=st.sampled_from(["dot", "location"])),
    st.builds(LuongConfig, window=st.sampled_from([None, "local_p"])),
    st.builds(TransformerConfig, norm=st.sampled_from(["pre", "post"])),
    st.builds(RnmtConfig, layers=positives),
)
optimizers = st.sampled_from([AdamConfig(), SgdConfig(momentum=0.9), AdadeltaConfig()]) | st.builds(
    AdamWConfig, betas=st.tuples(shares, shares), eps=st.floats(1e-300, 1)
)
schedules = st.sampled_from(
    [
        ConstantScheduleConfig(),
        NoamScheduleConfig(),
        InverseSqrtScheduleConfig(),
        CosineScheduleConfig(floor=0.1),
        PlateauScheduleConfig(),
    ]
)
trains = st.builds(
    TranslateTrainConfig,
    steps=st.integers(4000, 10**9),
    optimizer=optimizers,
    schedule=schedules,
    learning_rate=st.floats(1e-300, 1e300),
    max_grad_norm=st.floats(0, 9),
    alignments=st.none() | words,
) | st.builds(TranslateTrainConfig, epochs=positives, examples_per_batch=positives)
decodes = st.sampled_from([GreedyConfig(), BeamConfig(width=9), SampleConfig(top_p=0.5)])
texts = st.builds(TextConfig, normalize=st.sampled_from([None, "NFC"]), size=st.integers(300, 9999))
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
    assert parse_settings(dumps(settings)) == settings


def tables(settings):
    yield settings
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Config):
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
    for table in Config.__subclasses__():
        for kind in (table, *table.__subclasses__()):
            assert kind.__doc__
            for name, field in kind.model_fields.items():
                assert name == "kind" or field.description, f"{kind.__name__}.{name}"
                assert not field.description or field.description[-1] in ".,"


def test_what_may_be_unset_is_so_by_default():
    """TOML has no null: what is left out has its default."""
    for table in Config.__subclasses__():
        for name, field in table.model_fields.items():
            if NoneType in get_args(field.annotation) and field.default is not None:
                assert name in ALTERNATIVES, f"{table.__name__}.{name}"


def test_by_hand():
    text = dumps(TranslateSettings())
    assert text.startswith('# Task of the run.\ntask = "translate"\n')
    assert "\n[train.optimizer]\n# Adam (Kingma & Ba 2015).\nkind = " in text
    assert "\n# patience = (not set)\n" in text
    assert max(map(len, text.splitlines())) < 140
    assert text == dumps(parse_settings(text))
    assert tomllib.loads(text)["train"]["optimizer"]["betas"] == [0.9, 0.98]


def test_parts_of_a_mix():
    mix = MixDataConfig(
        parts=(
            MixPartConfig(data=DatesDataConfig()),
            MixPartConfig(weight=2.0, data=DatesDataConfig(size=5)),
        )
    )
    text = dumps(TranslateSettings(data=mix))
    assert text.count("[[data.parts]]") == text.count("[data.parts.data]") == 2
    assert parse_settings(text).data == mix


def test_text_that_must_be_escaped():
    data = FilesDataConfig(
        train='a"b\\c\n\t\x00\x7f\u2028é', fields={"source": "s", "target": "a b"}
    )
    assert parse_settings(dumps(TranslateSettings(data=data))).data == data
