"""Tests of temporary ids for unknown words."""

import pytest

from regard.text.copy_vocabulary import (
    decode_with_copies,
    encode_copy_sources,
    encode_copy_targets,
    tokens_with_copies,
)
from regard.text.special import END, UNKNOWN
from regard.text.train import train_tokenizer

TOKENIZER = train_tokenizer("words", ["the cat sat on the mat"], 50, lower=True)


def test_unknown_words_have_ids_beyond_the_vocabulary():
    [first, second] = encode_copy_sources(TOKENIZER, ["The Zork sat on Bim zork", "bim"], 100)
    size = TOKENIZER.size
    words = ["zork", "bim"]
    assert first.words == words
    assert first.ids == [
        *TOKENIZER.encode_ids(["the"])[0],
        size,
        *TOKENIZER.encode_ids(["sat on"])[0],
        size + 1,
        size,
    ]
    assert second == ([size], ["bim"], 1)
    assert decode_with_copies(TOKENIZER, first.ids, first.words) == "the zork sat on bim zork"
    assert tokens_with_copies(TOKENIZER, [size + 1, END], first.words) == ["bim", "</s>"]


def test_target_uses_the_unknown_words_of_its_source():
    [source] = encode_copy_sources(TOKENIZER, ["zork sat"], 100)
    [ids] = encode_copy_targets(TOKENIZER, ["ZORK met bim"], [source.words])
    assert ids == [TOKENIZER.size, UNKNOWN, UNKNOWN]
    assert decode_with_copies(TOKENIZER, ids, source.words) == "zork <unk> <unk>"


def test_truncated_words_have_no_id():
    [encoding] = encode_copy_sources(TOKENIZER, ["zork sat bim"], 2)
    assert encoding.words == ["zork"]
    assert (len(encoding.ids), encoding.full_length) == (2, 3)
    assert encode_copy_sources(TOKENIZER, [""], 5) == [([], [], 0)]
    assert decode_with_copies(TOKENIZER, [END], []) == ""


def test_the_name_of_a_special_token_is_a_word():
    [encoding] = encode_copy_sources(TOKENIZER, ["</s> sat"], 5)
    assert encoding.words == ["</s>"]
    assert decode_with_copies(TOKENIZER, encoding.ids, encoding.words) == "</s> sat"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Thanks, Bob.", ["Thanks", ",", "Bob", "."]),
        ("don't (2.5)", ["don't", "(", "2.5", ")"]),
        ("a.b@c.de; what?!", ["a.b@c.de", ";", "what", "?", "!"]),
        ("wait... --", ["wait", "...", "--"]),
        ("$500 (“so”).", ["$", "500", "(“", "so", "”", ")", "."]),
    ],
)
def test_split_punctuation(text, tokens):
    tokenizer = train_tokenizer("words", [text], 50, split_punctuation=True)
    assert [tokenizer.token(number) for number in tokenizer.encode_ids([text])[0]] == tokens
    assert tokenizer.is_word_level
    assert not train_tokenizer("characters", ["a"], 50).is_word_level
