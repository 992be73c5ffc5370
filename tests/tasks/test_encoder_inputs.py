"""Inputs of encoders: how texts become rows and tensors."""

import pytest

from regard.tasks.encoder_inputs import (
    BertInputs,
    CharacterInputs,
    PlainInputs,
    SentenceInputs,
    build_inputs,
    split_rows,
    truncate_pair,
)
from regard.text.special import END, START
from regard.text.train import train_tokenizer

WORDS = train_tokenizer("words", ["a fine film", "good and fine. very good"], 100)


def test_plain():
    a, film = WORDS.encode_ids(["a", "film"])
    [row] = PlainInputs(WORDS).rows([{"text": "a film"}], 9)
    assert row == [*a, *film, END]
    [row] = PlainInputs(WORDS).rows([{"text": "a film", "pair": "film"}], 9)
    assert row == [*a, *film, END, *film, END]


def test_bert():
    inputs = BertInputs(WORDS)
    rows = inputs.rows([{"text": "a film", "pair": "a"}, {"text": "a", "pair": "a film"}], 9)
    assert all(row[0] == START and row[-1] == END for row in rows)
    tensors = inputs.tensors([*rows, rows[0][:4]])
    assert tensors["segments"].tolist() == [
        [0, 0, 0, 0, 1, 1],
        [0, 0, 0, 1, 1, 1],
        [0, 0, 0, 0, 0, 0],
    ]
    assert tensors["valid"].sum(1).tolist() == [6, 6, 4]


def test_by_sentence():
    inputs = SentenceInputs(WORDS)
    rows = inputs.rows([{"text": "a film. good"}, {"text": ""}], 99)
    assert [len(sentence) for sentence in split_rows(rows[0])] == [3, 2]
    tensors = inputs.tensors(rows)
    assert tensors["ids"].shape == (2, 2, 3)
    assert tensors["valid"].sum(-1).tolist() == [[3, 2], [1, 0]]
    [row] = inputs.rows([{"text": "a film. good and fine"}], 5)
    assert len(row) == 5
    assert row[-1] == END


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [(9, 2, (8, 2)), (2, 9, (2, 8)), (9, 9, (5, 5)), (3, 3, (3, 3))],
)
def test_the_longer_text_is_cut_first(first, second, kept):
    assert tuple(map(len, truncate_pair(range(first), range(second), 10))) == kept


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("birnn", PlainInputs),
        ("bert", BertInputs),
        ("han", SentenceInputs),
        ("elmo", CharacterInputs),
    ],
)
def test_inputs_of_an_encoder(kind, inputs):
    assert type(build_inputs(kind, WORDS)) is inputs
