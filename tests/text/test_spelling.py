"""Words as characters: ids by hand, as the authors' code has them, one higher."""

import pytest

from regard.text.spelling import ALPHABET_SIZE, FILL, NO_WORD, spell, spell_sentence


def test_a_word_by_hand():
    assert spell("at", 6) == (259, ord("a") + 1, ord("t") + 1, 260, 261, 261)
    assert spell("é", 5) == (259, 0xC3 + 1, 0xA9 + 1, 260, 261)
    assert spell("", 3) == (259, 260, 261)
    assert len(spell("word")) == 50


def test_long_words_lose_their_end_and_keep_their_marks():
    assert spell("abcdef", 5) == (259, *(ord(c) + 1 for c in "abc"), 260)
    full = spell("x" * 100)
    assert (len(full), full[0], full[-1]) == (50, 259, 260)
    assert full == spell("x" * 48)
    assert FILL not in full


def test_a_sentence_has_a_word_at_each_end():
    sentence = spell_sentence(["at"], 4)
    assert sentence == [(259, 257, 260, 261), (259, 98, 117, 260), (259, 258, 260, 261)]
    assert spell_sentence([], 4) == [sentence[0], sentence[2]]


def test_no_text_spells_a_mark_or_no_word():
    every = "".join(map(chr, range(0x300))) + "\ud800<S>"
    ids = [i for word in (every[k : k + 20] for k in range(0, len(every), 20)) for i in spell(word)]
    marks = {259, 260, 261}
    assert {i for i in ids if not 1 <= i <= 256} == marks
    assert NO_WORD not in ids
    assert max(ids) < ALPHABET_SIZE == 262


def test_too_short_is_refused():
    for make in (lambda: spell("a", 2), lambda: spell_sentence(["a"], 0)):
        with pytest.raises(
            ValueError, match="longest must be at least 3, for a byte and two marks"
        ):
            make()
