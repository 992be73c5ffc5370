# ruff: noqa: E501 (a case is a line)
"""TOML in, settings out; and one line for whatever is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config.data.text_pairs import (
    DatesDataConfig,
    FilesDataConfig,
    MixDataConfig,
    PublicTranslationDataConfig,
)
from regard.config.decode import BeamConfig, GreedyConfig, SampleConfig
from regard.config.models.seq2seq import LuongConfig, RnnSearchConfig, TransformerConfig
from regard.config.train import AdadeltaConfig, NoamScheduleConfig, PlateauScheduleConfig
from regard.errors import InputError
from regard.tasks.load import load_settings, parse_settings, resolve_settings
from regard.tasks.translate.settings import TranslateSettings


def said(text, *overrides):
    with pytest.raises(ValueError) as caught:
        parse_settings(text, overrides, name="config.toml")
    assert "\n" not in str(caught.value)
    assert type(caught.value) is InputError
    return str(caught.value)


def test_nothing_is_the_default():
    assert parse_settings("") == resolve_settings({}) == TranslateSettings()
    assert isinstance(TranslateSettings().data, DatesDataConfig)
    assert isinstance(TranslateSettings().model, RnnSearchConfig)


def test_every_part():
    settings = parse_settings("""
        task = "translate"
        seed = 5
        [data]
        kind = "public"
        name = "multi30k"
        target = "fr"
        [text]
        kind = "bpe"
        joint = true
        [model]
        kind = "transformer"
        tie_embeddings = "all"
        heads = 4
        [train]
        epochs = 3
        examples_per_batch = 64
        learning_rate = 2
        optimizer = { kind = "adadelta", rho = 0.9 }
        [train.schedule]
        kind = "noam"
        warmup = 100
        [decode]
        kind = "sample"
        top_k = 5
    """)
    assert settings.data == PublicTranslationDataConfig(name="multi30k", target="fr")
    assert isinstance(settings.model, TransformerConfig)
    assert settings.model.heads == 4
    assert (settings.train.steps, settings.train.epochs) == (None, 3)
    assert (settings.train.tokens_per_batch, settings.train.examples_per_batch) == (None, 64)
    assert settings.train.optimizer == AdadeltaConfig(rho=0.9)
    assert settings.train.schedule == NoamScheduleConfig(warmup=100)
    assert settings.train.learning_rate == 2.0
    assert settings.decode == SampleConfig(top_k=5)


def test_files_and_mix():
    settings = parse_settings("""
        [data]
        kind = "mix"
        [[data.parts]]
        weight = 2
        data = { kind = "files", train = ["a.en", "a.de"], dev = "d.tsv" }
        [[data.parts]]
        [data.parts.data]
        kind = "dates"
        languages = ["de", "en"]
    """)
    assert isinstance(settings.data, MixDataConfig)
    first, second = settings.data.parts
    assert first.data == FilesDataConfig(train=("a.en", "a.de"), dev="d.tsv")
    assert (first.weight, second.weight) == (2.0, 1.0)
    assert second.data == DatesDataConfig(languages=("de", "en"))


def test_python_is_equal_to_toml():
    assert TranslateSettings(model=LuongConfig(score="dot")) == parse_settings(
        '[model]\nkind = "luong"\nscore = "dot"'
    )


def test_settings_are_frozen_and_strict():
    settings = TranslateSettings()
    with pytest.raises(ValueError, match="frozen"):
        settings.seed = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="frozen"):
        settings.train.steps = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="int_type"):
        TranslateSettings.model_validate({"seed": "3"})


class TestOverrides:
    def test_values_are_read_as_toml_or_taken_as_text(self):
        settings = parse_settings(
            "[train]\nsteps = 5\n",
            [
                "train.steps=50",
                "train.learning_rate=1e-4",
                "text.lower=true",
                "data.languages=['en', 'de']",
                "model.score=dot",
                'model.normalize="sparsemax"',
                "train.schedule.kind=plateau",
                "train.schedule.factor = 0.3",
            ],
        )
        assert settings.train.steps == 50
        assert settings.train.learning_rate == 1e-4
        assert settings.text.lower is True
        assert settings.data == DatesDataConfig(languages=("en", "de"))
        assert settings.model == RnnSearchConfig(score="dot", normalize="sparsemax")
        assert settings.train.schedule == PlateauScheduleConfig(factor=0.3)

    def test_text_with_signs_in_it(self):
        settings = parse_settings(
            "[data]\nkind = 'files'\ntrain = 'a'", ["data.train=/x y/a=b.tsv"]
        )
        assert settings.data == FilesDataConfig(train="/x y/a=b.tsv")
        settings = parse_settings("[data]\nkind = 'files'\ntrain = 'a'", ["data.dev=1\nb = 2"])
        assert settings.data == FilesDataConfig(train="a", dev="1\nb = 2")

    def test_the_last_one_counts(self):
        assert parse_settings("", ["seed=1", "seed=2"]).seed == 2

    def test_a_table_without_kind_is_of_the_default_kind(self):
        assert parse_settings("", ["decode.width=3"]).decode == BeamConfig(width=3)
        assert parse_settings("", ["decode.kind=greedy"]).decode == GreedyConfig()
        assert parse_settings("[train.optimizer]\neps = 1e-8").train.optimizer.kind == "adam"

    def test_the_other_of_two(self):
        train = parse_settings("[train]\nsteps = 5", ["train.epochs=2"]).train
        assert (train.steps, train.epochs) == (None, 2)
        train = parse_settings(
            "[train]\nexamples_per_batch = 5", ["train.tokens_per_batch=99"]
        ).train
        assert (train.tokens_per_batch, train.examples_per_batch) == (99, None)

    def test_an_entry_of_a_list(self):
        mix = "[data]\nkind = 'mix'\n[[data.parts]]\ndata = {kind = 'dates'}\n"
        changed = parse_settings(mix, ["data.parts.0.weight=3.5", "data.parts.0.data.size=7"])
        assert changed.data.parts[0].weight == 3.5
        assert changed.data.parts[0].data.size == 7
        assert said(mix, "data.parts.1.weight=3").endswith("'1' must be a number below 1")
        assert said(mix, "data.parts.x=3").endswith("'x' must be a number below 1")

    def test_what_was_given_stays_as_it_was(self):
        raw = {"train": {"steps": 5}}
        resolve_settings(raw, ["train.epochs=3", "data.size=3"])
        assert raw == {"train": {"steps": 5}}

    @pytest.mark.parametrize("word", ["train.steps", "=5", "a b=3", "train..steps=3", ""])
    def test_no_setting(self, word):
        told = f"command line: {word!r} is no setting; write it as train.steps=50"
        assert said("", word) == told

    def test_who_was_it(self):
        file = "[train]\nkeep_checkpoints = 0"
        assert said(file).startswith("config.toml: train.keep_checkpoints: ")
        assert said(file, "train.keep_checkpoints=-1").startswith(
            "command line: train.keep_checkpoints: "
        )
        assert said(file, "train.steps=5").startswith("config.toml: train.keep_checkpoints: ")
        assert said("seed = 1", "seed.x=1") == "command line: seed.x: seed is no table, but 1"
        assert said("", "seed.x=1").startswith("command line: seed: expected a whole number")


WRONG = [
    ("[train]\nlerning_rate = 1", "train.lerning_rate: unknown setting; did you mean 'learning_rate'?"),
    ("tasq = 'x'", "tasq: unknown setting; did you mean 'task'?"),
    ("[trian]\nsteps = 1", "trian: unknown setting; did you mean 'train'?"),
    ("[model]\nheads = 2", "model.heads: unknown setting of 'rnnsearch'; kind 'transformer' has it"),
    ("[train.schedule]\nxyz = 1", "train.schedule.xyz: unknown setting of 'constant'; there are kind, warmup"),
    ("[train]\nsteps = 'many'", 'train.steps: expected a whole number, not "many"'),
    ("[train]\nsteps = 5.0", "train.steps: expected a whole number, not 5.0"),
    ("[train]\nsteps = true", "train.steps: expected a whole number, not true"),
    ("[train]\nmax_grad_norm = '1'", 'train.max_grad_norm: expected a number, not "1"'),
    ("[train]\nlearning_rate = nan", "train.learning_rate: expected a number, not NaN"),
    ("[text]\nlower = 1", "text.lower: expected true or false, not 1"),
    ("[text]\nlower = 2000-01-01", 'text.lower: expected true or false, not "2000-01-01"'),
    ("train = 3", "train: expected a table, not 3"),
    ("data = []", "data: expected a table, not []"),
    ("[data]\nlanguages = 'en'", 'data.languages: expected a list, each a text, not "en"'),
    ("[data]\nlanguages = ['en', 3]", "data.languages.1: expected a list, each a text, not 3"),
    ("[data]\nlanguages = []", "data.languages: must not be empty"),
    ("[data]\nkind = 'files'\ntrain = 3", "data.train: expected a text or a list, each a text, not 3"),
    ("[data]\nkind = 'files'\ntrain = ''", "data.train: must not be empty"),
    ("[train]\nsteps = 0", "train.steps: must be at least 1, not 0"),
    ("[model]\ndropout = 1", "model.dropout: must be less than 1, not 1"),
    ("[train]\nlearning_rate = 0", "train.learning_rate: must be more than 0, not 0"),
    ("[train]\nteacher_forcing = 2", "train.teacher_forcing: must be at most 1, not 2"),
    ("task = 'translat'", 'task: must be one of "translate", "summarize", "language", "chat", "classify", "tag", "understand", "answer", "pretrain", "image", "caption", "music", "copy", "recall", "bandit", "fewshot", "fold", not "translat"; did you mean "translate"?'),
    ("[train]\nautocast = 'int8'", 'train.autocast: must be one of "bfloat16", "float16", not "int8"'),
    ("[data]\nkind = 'datez'", 'data.kind: must be one of "dates", "reorder", "files", "public", "mix", not "datez"; did you mean "dates"?'),
    ("[data]\nkind = 3", 'data.kind: must be one of "dates", "reorder", "files", "public", "mix", not "3"'),
    ("[data]\nkind = 'public'", "data.name: missing; expected \"multi30k\""),
    ("[data]\nkind = 'files'", "data.train: missing; expected a text or a list, each a text. One file"),
    ("[data]\nkind = 'mix'\nparts = [{data = {kind = 'dates', siz = 3}}]", "data.parts.0.data.siz: unknown setting of 'dates'; did you mean 'size'?"),
    ("[data]\nkind = 'mix'\nparts = []", "data.parts: must not be empty"),
    ("[data]\nkind = 'mix'\nparts = [{}]", "data.parts.0.data: missing; expected a table"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_wrong(text, words):
    assert said(text).startswith(f"config.toml: {words}")


RULES = [
    ("[train]\nsteps = 3\nepochs = 3", "train: steps and epochs are both given: take one of them out"),
    ("[train]\ntokens_per_batch = 3\nexamples_per_batch = 3", "train: tokens_per_batch and examples_per_batch are both given"),
    ("[train]\naverage_checkpoints = 5", "train: average_checkpoints = 5 needs as many checkpoints, but keep_checkpoints = 3: keep more"),
    ("[train]\nepochs = 3\n[train.schedule]\nkind = 'cosine'", "train: schedule.kind = 'cosine' must know its end: give steps, not epochs"),
    ("[train]\nsteps = 50\n[train.schedule]\nkind = 'noam'", "train: schedule.warmup = 4000 is more than steps = 50"),
    ("[train]\nguided_alignment_weight = 0.5", "train: guided_alignment_weight needs alignments"),
    ("[model]\nkind = 'transformer'\nheads = 3", "model: dim = 256 cannot be divided among heads = 3"),
    ("[model]\nkind = 'transformer'\ntie_embeddings = 'all'", "model.tie_embeddings = 'all' needs one vocabulary: set text.joint = true"),
    ("[text]\nkind = 'byte_bpe'\nsize = 100", "text: size must be at least 260 for byte_bpe, not 100"),
    ("[decode]\nmin_length = 9\nmax_length = 5", "decode: min_length = 9 is more than max_length = 5"),
    ("[decode]\nn_best = 6", "decode: n_best = 6 is more than width = 5"),
    ("[data]\nkind = 'public'\nname = 'multi30k'\ntarget = 'en'", "data: source and target are both 'en'"),
    ("[data]\nkind = 'files'\ntrain = 'a'\ncolumns = ['source', 'x']", "data: columns must name 'target' once, not ['source', 'x']"),
    ("[data]\nkind = 'files'\ntrain = 'a'\nfields = {source = 'x'}", "data: fields must name 'target' once, not ['source']"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), RULES)
def test_rules_between_fields(text, words):
    assert said(text).startswith(f"config.toml: {words}")


def test_more_than_one():
    told = said("[train]\nkeep_checkpoints = 'x'\nmax_grad_norm = 'y'\nlerning_rate = 3")
    assert told.startswith("config.toml: train.lerning_rate: unknown setting")
    assert told.endswith("(and 2 more)")
    inside = "[data]\nkind = 'mix'\nparts = [{data = {kind = 'dates', siz = 3}}]"
    assert said(inside).endswith("did you mean 'size'?")


@pytest.mark.parametrize("name", ["\n", "a.b", "", "\u2028", "x" * 1000])
def test_a_key_that_no_one_writes_bare(name):
    with pytest.raises(ValueError) as caught:
        resolve_settings({"data": {name: None}})
    told = str(caught.value)
    assert told.startswith('settings: data."')
    assert len(told.splitlines()) == 1
    assert "unknown setting of 'dates'; there are kind, " in told


class TestFile:
    def test_it_is_read(self, tmp_path):
        path = tmp_path / "a.toml"
        path.write_bytes(b"\xef\xbb\xbfseed = 7\r\n")
        assert load_settings(path).seed == 7
        assert load_settings(str(path), ["seed=8"]).seed == 8

    def test_missing(self, tmp_path):
        for path, words in (
            (tmp_path / "a.toml", "there is no such file or preset; `regard init` writes one"),
            (tmp_path, "this is a folder; give a TOML file"),
        ):
            with pytest.raises(ValueError, match=words) as caught:
                load_settings(path)
            assert str(caught.value).startswith(f"{path}: ")

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"seed = 1\n\n[train\n", ":3: not TOML: Expected ']'"),
            (b"seed = 1\nseed = 2\n", ":2: not TOML: Cannot overwrite a value"),
            (b"seed =", ":1: not TOML: Invalid value"),
            (b"a = '''\n\n", ":3: not TOML: "),
            (b"seed = 1\nx = '\xff'", ":2: byte 0xff is not UTF-8"),
            (b"\0", ":1: not TOML: "),
        ],
    )
    def test_not_toml(self, tmp_path, data, words):
        path = tmp_path / "a.toml"
        path.write_bytes(data)
        with pytest.raises(ValueError) as caught:
            load_settings(path)
        assert str(caught.value).startswith(f"{path}{words}")
        assert "\n" not in str(caught.value)

    def test_its_name_is_in_every_message(self, tmp_path):
        path = tmp_path / "a.toml"
        path.write_text("seed = -1")
        with pytest.raises(ValueError, match=r"a.toml: seed: must be at least 0, not -1"):
            load_settings(path)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(
    ["task", "seed", "data", "text", "model", "train", "decode", "kind", "steps", "parts", "train"]
)
trees = st.dictionaries(names, anything | st.dictionaries(names, anything))


@given(trees)
def test_whatever_is_given_one_line_comes_back(raw):
    said = "settings: "
    try:
        resolve_settings(raw)
    except ValueError as error:
        said = str(error)
    assert said.startswith("settings: ")
    assert len(said.splitlines()) == 1
    assert len(said) < 500
