"""Settings that the data choose: tokenizer, steps, validations, early stop."""

import pytest

from regard.batching.indexed import IndexedBatches
from regard.data.build import build_corpus
from regard.tasks.automatic import (
    describe_choices,
    resolve_text,
    resolve_training,
    suitable_steps,
    suitable_tokenizer,
    with_saved_choices,
)
from regard.tasks.load import resolve_settings


def batches(count):
    source = IndexedBatches(lambda number: number)
    source.batches_per_epoch = count
    return source


@pytest.mark.parametrize(
    ("per_epoch", "steps"),
    [(1, 200), (5, 1000), (25, 1000), (50, 2000), (10_000, 20_000), (None, 20_000)],
)
def test_steps_by_the_size_of_the_data(per_epoch, steps):
    assert suitable_steps(per_epoch) == steps


def test_the_length_of_a_training():
    train = resolve_training(resolve_settings({}), batches(50)).train
    assert (train.steps, train.validate_every, train.patience) == (2000, 100, 7)


@pytest.mark.parametrize("steps", [1, 9, 10, 25, 1000, 12_345])
def test_a_training_is_validated_at_least_ten_times(steps):
    settings = resolve_training(resolve_settings({"train": {"steps": steps}}), batches(3))
    assert steps // settings.train.validate_every >= min(steps, 10)
    assert settings.train.patience is None  # a given length has no early stop


def test_given_settings_win():
    given = {"epochs": 3, "validate_every": 5, "patience": 2}
    settings = resolve_settings({"train": given})
    assert resolve_training(settings, batches(4)) is settings
    train = resolve_training(resolve_settings({"train": {"epochs": 3}}), batches(400)).train
    assert (train.steps, train.epochs, train.validate_every) == (None, 3, 60)


def test_a_warmup_fits_into_the_training():
    settings = resolve_settings({"train": {"schedule": {"kind": "noam", "warmup": 4000}}})
    assert resolve_training(settings, batches(1)).train.steps == 12_000


def test_words_if_they_are_few_else_pieces():
    few, many = ["guten Tag", "guten Abend"], [f"word{n} other{n}" for n in range(2000)]
    assert suitable_tokenizer(few)[0] == "words"
    assert suitable_tokenizer(many) == ("bpe", 4000)
    assert suitable_tokenizer(many * 2000) == ("bpe", 32_000)
    assert suitable_tokenizer(["今日はとてもいい天気ですねそうですね本当に"])[0] == "bpe"


def test_dates_are_read_by_character():
    settings = resolve_settings({"data": {"kind": "dates", "size": 5}})
    assert resolve_text(settings, build_corpus(settings.data)).text.kind == "characters"


def test_a_model_of_words_gets_words():
    settings = resolve_settings({"task": "classify", "model": {"kind": "elmo"}})
    assert resolve_text(settings, build_corpus(settings.data)).text.kind == "words"


def test_a_resumed_run_keeps_what_was_chosen():
    given = resolve_settings({"text": {"lower": True}})
    update = {"text": given.text.model_copy(update={"kind": "bpe", "size": 4000})}
    saved = resolve_training(given.model_copy(update=update), batches(50))
    assert with_saved_choices(given, saved) == saved
    longer = with_saved_choices(resolve_settings({"train": {"steps": 9000}}), saved)
    assert (longer.train.steps, longer.train.validate_every) == (9000, 100)


def test_what_was_chosen_is_described_in_one_line():
    given = resolve_settings({})
    line = describe_choices(given, resolve_training(given, batches(50)))
    assert line == (
        "chosen by the size of the data: train.steps = 2000, train.patience = 7, "
        "train.validate_every = 100"
    )
    explicit = resolve_settings({"train": {"steps": 5}, "text": {"kind": "words"}})
    assert describe_choices(explicit, explicit) is None
