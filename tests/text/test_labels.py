"""Names of classes, and where sentences end."""

import pytest

from regard.text.labels import Labels
from regard.text.sentences import split_sentences


def test_order():
    assert Labels.from_data(["b", "a", "b"]).names == ["a", "b"]
    assert Labels.from_data(["10", "9", "-1"]).names == ["-1", "9", "10"]


def test_numbers_and_what_is_unknown():
    labels = Labels(["anger", "joy"])
    assert [labels.index(name, "here") for name in ("joy", "anger")] == [1, 0]
    with pytest.raises(ValueError, match="x:3: label 'joi' is not in the training data; did you m"):
        labels.index("joi", "x:3")
    with pytest.raises(ValueError, match="there are anger, joy"):
        labels.index("?", "x:3")


@pytest.mark.parametrize("names", [[], ["a"], ["a", "a"]])
def test_too_few(names):
    with pytest.raises(ValueError, match="labels must be at least two different ones"):
        Labels(names)


def test_saved_and_loaded(tmp_path):
    Labels(["ja", "nö"]).save(tmp_path / "labels.json")
    assert Labels.load(tmp_path / "labels.json").names == ["ja", "nö"]
    for wrong in ("{", "{}", "[1, 2]"):
        (tmp_path / "labels.json").write_text(wrong)
        with pytest.raises(ValueError, match=r"labels.json: not a list of labels"):
            Labels.load(tmp_path / "labels.json")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('It was "bad." Really!<br /><br />Why?', ['It was "bad."', "Really!", "Why?"]),
        ("one\n\ntwo", ["one", "two"]),
        ("3.5 of 5... fine", ["3.5 of 5...", "fine"]),
        ("", [""]),
        (" \n ", [""]),
    ],
)
def test_sentences(text, parts):
    assert split_sentences(text) == parts
