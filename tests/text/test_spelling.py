"""Tests of character ids; they are those of the authors' code plus one."""

import pytest

from regard.text.spelling import ALPHABET_SIZE, FILL, NO_WORD, spell, spell_sentence


def test_known_words():
    assert spell("at", 6) == (259, ord("a") + 1, ord("t") + 1, 260, 261, 261)
    assert spell("é", 5) == (259, 0xC3 + 1, 0xA9 + 1, 260, 261)
    assert spell("", 3) == (259, 260, 261)
    assert len(spell("word")) == 50


def test_long_words_are_truncated():
    assert spell("abcdef", 5) == (259, *(ord(c) + 1 for c in "abc"), 260)
    ids = spell("x" * 100)
    assert (len(ids), ids[0], ids[-1]) == (50, 259, 260)
    assert ids == spell("x" * 48)
    assert FILL not in ids


def test_sentence_boundaries():
    sentence = spell_sentence(["at"], 4)
    assert sentence == [(259, 257, 260, 261), (259, 98, 117, 260), (259, 258, 260, 261)]
    assert spell_sentence([], 4) == [sentence[0], sentence[2]]


def test_text_never_contains_special_ids():
    all_characters = "".join(map(chr, range(0x300))) + "\ud800<S>"
    ids = [
        i
        for word in (all_characters[k : k + 20] for k in range(0, len(all_characters), 20))
        for i in spell(word)
    ]
    boundaries = {259, 260, 261}
    assert {i for i in ids if not 1 <= i <= 256} == boundaries
    assert NO_WORD not in ids
    assert max(ids) < ALPHABET_SIZE == 262


def test_bad_max_length():
    for call in (lambda: spell("a", 2), lambda: spell_sentence(["a"], 0)):
        with pytest.raises(ValueError, match="max_length must be at least 3, for a byte and two"):
            call()
