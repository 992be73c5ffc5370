"""What the settings repeat of other rooms agrees with those rooms."""

import subprocess
import sys
from inspect import Parameter, signature
from typing import get_args

import pytest

from regard.config.data.bits import CopyDataConfig, RecallDataConfig
from regard.config.data.data_fields import LANGUAGES
from regard.config.data.text_pairs import (
    DatesDataConfig,
    FilesDataConfig,
    PublicTranslationDataConfig,
    ReorderDataConfig,
)
from regard.config.data.texts import (
    LabeledDataConfig,
    PlantedDataConfig,
    PublicLabeledDataConfig,
    PublicTextDataConfig,
    TextDataConfig,
)
from regard.config.text import TextConfig
from regard.data.formats import documents, labeled_texts, text_pairs
from regard.data.public import texts, translation
from regard.data.synthetic import bits, dates, planted, reorder
from regard.text import train as learn


def test_languages_are_those_of_the_dates():
    assert LANGUAGES == dates.LANGUAGES


def test_names_are_those_that_are_published():
    assert get_args(PublicTranslationDataConfig.model_fields["name"].annotation) == tuple(
        translation.TRANSLATION_DATASETS
    )
    for table, with_labels in ((PublicLabeledDataConfig, True), (PublicTextDataConfig, False)):
        names = [n for n, one in texts.TEXT_DATASETS.items() if bool(one.labels) == with_labels]
        assert list(get_args(table.model_fields["name"].annotation)) == names


def test_formats_are_those_that_can_be_read():
    formats = get_args(get_args(FilesDataConfig.model_fields["format"].annotation)[0])
    assert formats == get_args(text_pairs.TextPairFormat)
    assert FilesDataConfig.model_fields["columns"].default == text_pairs.PAIR_FIELDS
    formats = get_args(get_args(LabeledDataConfig.model_fields["format"].annotation)[0])
    assert formats == get_args(labeled_texts.LabeledTextFormat)
    assert get_args(TextDataConfig.model_fields["unit"].annotation) == get_args(
        documents.DocumentUnit
    )


def test_kinds_of_text_are_those_that_can_be_trained():
    kinds = ("auto", *learn.TOKENIZER_KINDS)
    assert get_args(TextConfig.model_fields["kind"].annotation) == kinds


@pytest.mark.parametrize("kind", learn.TOKENIZER_KINDS)
def test_the_least_size_is_that_of_the_trainer(kind):
    """One less is refused here, and this one is taken there."""
    least = next(size for size in range(5, 999) if accepted(kind, size))
    assert learn.train_tokenizer(kind, ["a b"], least).size <= least
    with pytest.raises(ValueError, match=f"size must be at least {least}"):
        learn.train_tokenizer(kind, ["a b"], least - 1)


def accepted(kind, size):
    try:
        TextConfig(kind=kind, size=size)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("made", "data"),
    [
        (dates.Dates, DatesDataConfig),
        (reorder.ReorderedSentences, ReorderDataConfig),
        (planted.PlantedWords, PlantedDataConfig),
        (labeled_texts.LabeledTextFiles, LabeledDataConfig),
        (documents.DocumentFiles, TextDataConfig),
        (bits.Copy, CopyDataConfig),
        (bits.Recall, RecallDataConfig),
    ],
)
def test_defaults_are_those_of_the_constructor(made, data):
    parameters = signature(made).parameters
    assert set(parameters) == set(data.model_fields) - {"kind"}
    for name, parameter in parameters.items():
        default = data.model_fields[name].default
        if parameter.default is not Parameter.empty and (name, default) != ("held_out", None):
            assert default == parameter.default


def test_orders_are_those_that_can_be_made():
    assert get_args(ReorderDataConfig.model_fields["order"].annotation) == reorder.ORDERS


def test_no_torch_and_no_numpy():
    code = (
        "import sys; import regard.tasks.load, regard.config.dump, regard.data.build;"
        "import regard.text.train; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
