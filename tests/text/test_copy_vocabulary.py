"""Ids for words that a vocabulary does not know, and back."""

import pytest

from regard.text.copy_vocabulary import (
    decode_with_copies,
    encode_copy_sources,
    encode_copy_targets,
    tokens_with_copies,
)
from regard.text.special import END, UNKNOWN
from regard.text.train import train_tokenizer

KNOWN = train_tokenizer("words", ["the cat sat on the mat"], 50, lower=True)


def test_unknown_words_have_ids_beyond_the_vocabulary():
    [one, other] = encode_copy_sources(KNOWN, ["The Zork sat on Bim zork", "bim"], 100)
    size = KNOWN.size
    words = ["zork", "bim"]
    assert one.words == words
    assert one.ids == [
        *KNOWN.encode_ids(["the"])[0],
        size,
        *KNOWN.encode_ids(["sat on"])[0],
        size + 1,
        size,
    ]
    assert other == ([size], ["bim"], 1)
    assert decode_with_copies(KNOWN, one.ids, one.words) == "the zork sat on bim zork"
    assert tokens_with_copies(KNOWN, [size + 1, END], one.words) == ["bim", "</s>"]


def test_a_summary_uses_the_words_of_its_document():
    [source] = encode_copy_sources(KNOWN, ["zork sat"], 100)
    [ids] = encode_copy_targets(KNOWN, ["ZORK met bim"], [source.words])
    assert ids == [KNOWN.size, UNKNOWN, UNKNOWN]
    assert decode_with_copies(KNOWN, ids, source.words) == "zork <unk> <unk>"


def test_what_is_cut_off_has_no_id():
    [one] = encode_copy_sources(KNOWN, ["zork sat bim"], 2)
    assert one.words == ["zork"]
    assert (len(one.ids), one.full_length) == (2, 3)
    assert encode_copy_sources(KNOWN, [""], 5) == [([], [], 0)]
    assert decode_with_copies(KNOWN, [END], []) == ""


def test_the_name_of_a_special_token_is_a_word():
    [one] = encode_copy_sources(KNOWN, ["</s> sat"], 5)
    assert one.words == ["</s>"]
    assert decode_with_copies(KNOWN, one.ids, one.words) == "</s> sat"


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
def test_marks_are_set_apart(text, tokens):
    found = train_tokenizer("words", [text], 50, split_punctuation=True)
    assert [found.token(number) for number in found.encode_ids([text])[0]] == tokens
    assert found.is_word_level
    assert not train_tokenizer("characters", ["a"], 50).is_word_level
