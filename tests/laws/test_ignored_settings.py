"""No setting is ignored in silence: it has an effect, or it is refused."""

import re
from typing import Any

import pytest
import torch

from regard.config.base import Config
from regard.data.build import build_corpus
from regard.errors import InputError
from regard.tasks.building import batch_options, build_untrained_run
from regard.tasks.load import resolve_settings
from regard.training.build import build_training

# Read by `Trainer`, for every task alike.
OF_TRAINER = {
    *("steps", "epochs", "metric", "patience", "validate_every", "save_every"),
    *("keep_checkpoints", "keep_finished", "average_checkpoints", "tensorboard", "device"),
}
# Read if another setting is given: the weight of the alignments.
CONDITIONAL = {"train.alignments"}


def first_loss(settings) -> float:
    torch.manual_seed(1)
    corpus = build_corpus(settings.data)
    task = build_untrained_run(settings, corpus).task
    return task.loss(next(task.batches(corpus, batch_options(settings))), 0).total.item()


def test_label_smoothing_changes_the_loss_or_is_refused(tiny, tiny_settings, unchecked):
    expected = first_loss(tiny_settings(tiny, {}))
    try:
        settings = tiny_settings(tiny, {"label_smoothing": 0.3})
    except InputError as error:
        pattern = r"settings: train.label_smoothing (is not for|has no effect).*"
        if not re.fullmatch(pattern, str(error)):  # one line
            raise
    else:
        assert first_loss(settings) != expected


def setting_keys(settings: Config) -> dict[str, tuple[type[Config], str]]:
    """Return the keys of all settings except those of [model] and [data].

    Those two are the arguments of a class, which other tests compare with it.
    """
    keys = {}
    for table_name in type(settings).model_fields:
        table = getattr(settings, table_name)
        if isinstance(table, Config) and table_name not in ("model", "data"):
            for name in type(table).model_fields:
                keys[f"{table_name}.{name}"] = (type(table), name)
    keys.pop("decode.kind", None)  # the kind is the class of the table
    return keys


def other_value(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case str():
            return "words" if value != "words" else "bpe"
        case None:
            return 3
        case _:
            return value + 1 if value > 1 else value / 2 or 0.5


def test_every_setting_is_read_or_refused(tiny, tiny_settings, unchecked, monkeypatch):
    settings = tiny_settings(tiny, {})
    keys, reads, original = setting_keys(settings), set(), Config.__getattribute__

    def read_and_record(self: Config, name: str) -> object:
        reads.add((type(self), name))
        return original(self, name)

    corpus = build_corpus(settings.data)
    monkeypatch.setattr(Config, "__getattribute__", read_and_record)
    run = build_untrained_run(settings, corpus)
    batches = run.task.batches(corpus, batch_options(settings))
    build_training(settings, run.task, batches).step()
    monkeypatch.undo()
    unread = {key for key, place in keys.items() if place not in reads}
    unread -= {f"train.{name}" for name in OF_TRAINER}
    unused = settings.unused_settings()
    refused = {key for key in keys if key in unused or key.partition(".")[0] in unused}
    assert unread - CONDITIONAL <= refused
    for key in refused:
        table, name = key.split(".")
        values = settings.model_dump()
        values[table][name] = other_value(values[table][name])
        with pytest.raises(InputError) as error:
            resolve_settings(values)
        assert "\n" not in str(error.value)
