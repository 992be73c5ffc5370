"""What the settings repeat of other rooms agrees with those rooms."""

import subprocess
import sys
from inspect import Parameter, signature
from typing import get_args

import pytest

from regard.config.bits import CopyData, RecallData
from regard.config.data import (
    LANGUAGES,
    DatesData,
    FilesData,
    LabelledData,
    NamedData,
    NamedLabelled,
    NamedText,
    PlantedData,
    ReorderData,
    TextData,
)
from regard.config.text import Text
from regard.corpora import (
    bits,
    dates,
    documents,
    files,
    labelled,
    named,
    planted,
    published,
    reorder,
)
from regard.text import learn


def test_languages_are_those_of_the_dates():
    assert LANGUAGES == dates.LANGUAGES


def test_names_are_those_that_are_published():
    assert get_args(NamedData.model_fields["name"].annotation) == tuple(named.PUBLISHED)
    for table, with_labels in ((NamedLabelled, True), (NamedText, False)):
        names = [n for n, one in published.PUBLISHED.items() if bool(one.labels) == with_labels]
        assert list(get_args(table.model_fields["name"].annotation)) == names


def test_formats_are_those_that_can_be_read():
    formats = get_args(get_args(FilesData.model_fields["format"].annotation)[0])
    assert formats == get_args(files.Format)
    assert FilesData.model_fields["columns"].default == files.FIELDS
    formats = get_args(get_args(LabelledData.model_fields["format"].annotation)[0])
    assert formats == get_args(labelled.Format)
    assert get_args(TextData.model_fields["unit"].annotation) == get_args(documents.Unit)


def test_kinds_of_text_are_those_that_can_be_trained():
    assert get_args(Text.model_fields["kind"].annotation) == learn.KINDS


@pytest.mark.parametrize("kind", learn.KINDS)
def test_the_least_size_is_that_of_the_trainer(kind):
    """One less is refused here, and this one is taken there."""
    least = next(size for size in range(5, 999) if accepted(kind, size))
    assert learn.train_tokeniser(kind, ["a b"], least).size <= least
    with pytest.raises(ValueError, match=f"size must be at least {least}"):
        learn.train_tokeniser(kind, ["a b"], least - 1)


def accepted(kind, size):
    try:
        Text(kind=kind, size=size)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("made", "data"),
    [
        (dates.Dates, DatesData),
        (reorder.Reorder, ReorderData),
        (planted.Planted, PlantedData),
        (labelled.Labelled, LabelledData),
        (documents.Documents, TextData),
        (bits.Copy, CopyData),
        (bits.Recall, RecallData),
    ],
)
def test_defaults_are_those_of_the_constructor(made, data):
    parameters = signature(made).parameters
    assert set(parameters) == set(data.model_fields) - {"kind"}
    for name, parameter in parameters.items():
        if parameter.default is not Parameter.empty:
            assert data.model_fields[name].default == parameter.default


def test_orders_are_those_that_can_be_made():
    assert get_args(ReorderData.model_fields["order"].annotation) == reorder.ORDERS


def test_no_torch_and_no_numpy():
    code = (
        "import sys; import regard.config.load, regard.config.write, regard.corpora.build;"
        "import regard.text.learn; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
