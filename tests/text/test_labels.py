"""Tests of class labels and of sentence splitting."""

import pytest

from regard.text.labels import Labels
from regard.text.sentences import split_sentences


def test_order():
    assert Labels.from_data(["b", "a", "b"]).names == ["a", "b"]
    assert Labels.from_data(["10", "9", "-1"]).names == ["-1", "9", "10"]


def test_indices_and_unknown_labels():
    labels = Labels(["anger", "joy"])
    assert [labels.index(name, "here") for name in ("joy", "anger")] == [1, 0]
    with pytest.raises(ValueError, match="x:3: label 'joi' is not in the training data; did you m"):
        labels.index("joi", "x:3")
    with pytest.raises(ValueError, match="the labels are anger, joy"):
        labels.index("?", "x:3")


@pytest.mark.parametrize("names", [[], ["a"], ["a", "a"]])
def test_too_few_labels(names):
    with pytest.raises(ValueError, match="labels must be at least two different names"):
        Labels(names)


def test_save_and_load(tmp_path):
    Labels(["ja", "nö"]).save(tmp_path / "labels.json")
    assert Labels.load(tmp_path / "labels.json").names == ["ja", "nö"]
    for content in ("{", "{}", "[1, 2]"):
        (tmp_path / "labels.json").write_text(content)
        with pytest.raises(ValueError, match=r"labels.json: not .*list of labels"):
            Labels.load(tmp_path / "labels.json")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('It was "bad." Really!<br /><br />Why?', ['It was "bad."', "Really!", "Why?"]),
        ("one\n\ntwo", ["one", "two"]),
        ("3.5 of 5... fine", ["3.5 of 5...", "fine"]),
        ("", [""]),
        (" \n ", [""]),
    ],
)
def test_sentences(text, sentences):
    assert split_sentences(text) == sentences
