"""Ids for words that a vocabulary does not know, and back."""

import pytest

from regard.text.extended import decoded, extended, seen_from, tokens_of
from regard.text.learn import train_tokeniser
from regard.text.special import END, UNKNOWN

KNOWN = train_tokeniser("words", ["the cat sat on the mat"], 50, lower=True)


def test_unknown_words_have_ids_beyond_the_vocabulary():
    [one, other] = extended(KNOWN, ["The Zork sat on Bim zork", "bim"], 100)
    size = KNOWN.size
    words = ["zork", "bim"]
    assert one.words == words
    assert one.ids == [*KNOWN.ids(["the"])[0], size, *KNOWN.ids(["sat on"])[0], size + 1, size]
    assert other == ([size], ["bim"], 1)
    assert decoded(KNOWN, one.ids, one.words) == "the zork sat on bim zork"
    assert tokens_of(KNOWN, [size + 1, END], one.words) == ["bim", "</s>"]


def test_a_summary_uses_the_words_of_its_document():
    [source] = extended(KNOWN, ["zork sat"], 100)
    [ids] = seen_from(KNOWN, ["ZORK met bim"], [source.words])
    assert ids == [KNOWN.size, UNKNOWN, UNKNOWN]
    assert decoded(KNOWN, ids, source.words) == "zork <unk> <unk>"


def test_what_is_cut_off_has_no_id():
    [one] = extended(KNOWN, ["zork sat bim"], 2)
    assert one.words == ["zork"]
    assert (len(one.ids), one.length) == (2, 3)
    assert extended(KNOWN, [""], 5) == [([], [], 0)]
    assert decoded(KNOWN, [END], []) == ""


def test_the_name_of_a_special_token_is_a_word():
    [one] = extended(KNOWN, ["</s> sat"], 5)
    assert one.words == ["</s>"]
    assert decoded(KNOWN, one.ids, one.words) == "</s> sat"


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
    found = train_tokeniser("words", [text], 50, apart=True)
    assert [found.token(number) for number in found.ids([text])[0]] == tokens
    assert found.in_words
    assert not train_tokeniser("characters", ["a"], 50).in_words
