"""Laws of the settings of every task."""

import pytest

from regard.config.base import Config
from regard.config.presets import preset_paths
from regard.tasks.catalogue import TASKS
from regard.tasks.load import load_settings, resolve_settings


def tables(config, path=()):
    """Yield every table of settings with the path to it."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, Config):
            yield (*path, name), value
            yield from tables(value, (*path, name))


@pytest.mark.parametrize("task", TASKS)
def test_a_setting_at_its_default_changes_nothing_else(task):
    default = resolve_settings({"task": task})
    checked = 0
    for path, table in tables(default):
        for key, value in table:
            if value is None or isinstance(value, Config):
                continue
            raw = {key: value}
            for name in reversed(path):
                raw = {name: raw}
            assert resolve_settings({"task": task, **raw}) == default, (path, key)
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("task", TASKS)
def test_an_empty_table_is_the_default(task):
    default = resolve_settings({"task": task})
    for path, _ in tables(default):
        raw = {}
        for name in reversed(path):
            raw = {name: raw}
        assert resolve_settings({"task": task, **raw}) == default, path


def test_task_defaults_survive_a_partial_table():
    text = resolve_settings({"task": "chat"}, ["text.zero_digits=true"]).text
    assert (text.kind, text.size, text.lower, text.zero_digits) == ("byte_bpe", 2000, True, True)
    model = resolve_settings({"task": "image", "model": {"layers": 2}}).model
    assert (model.patch_size, model.dim, model.layers) == (4, 64, 2)


def test_another_kind_has_its_own_defaults():
    data = resolve_settings({"task": "tag"}, ["data.kind=tagged", "data.train=a.conll"]).data
    assert (data.kind, data.train, data.held_out) == ("tagged", "a.conll", None)


def test_a_preset_takes_other_data_in_any_order():
    for changes in (["data.kind=tagged", "data.train=a"], ["data.train=a", "data.kind=tagged"]):
        settings = load_settings("wnut17-bilstm", changes)
        assert (settings.data.kind, settings.data.train) == ("tagged", "a")
        assert settings.model == load_settings("wnut17-bilstm").model


def test_another_kind_of_model_keeps_what_both_kinds_have():
    toml = {"model": {"kind": "transformer", "dim": 48, "heads": 2}}
    model = resolve_settings(toml, ["model.kind=luong"]).model
    assert (model.kind, model.dim) == ("luong", 48)
    train = {"train": {"optimizer": {"kind": "adamw", "weight_decay": 0.3}}}
    assert resolve_settings(train, ["train.optimizer.kind=sgd"]).train.optimizer.kind == "sgd"


@pytest.mark.parametrize("preset", preset_paths())
def test_init_writes_a_preset(preset, capsys):
    from regard.cli.init import init
    from regard.tasks.load import parse_settings

    init(preset)
    text = capsys.readouterr().out
    assert parse_settings(text) == load_settings(preset)
    assert text.startswith("# ")
