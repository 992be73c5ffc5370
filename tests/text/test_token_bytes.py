"""What tokens add to a text, and where a text that is being written is taken up."""

import pytest

from regard.text.token_bytes import LETTER_TO_BYTE, TokenBytes, first_word
from regard.text.train import TOKENIZER_KINDS, train_tokenizer

TEXTS = ["the cat sat on the mat. a dög isn't here.", "the Log is ours, and the frog's"] * 9
SPACED = {"bpe", "unigram", "wordpiece", "words"}  # with a space before the first word, too


def made(kind: str, **options: bool) -> TokenBytes:
    return TokenBytes(train_tokenizer(kind, TEXTS, 300, **options))


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_pieces_are_what_decoding_adds(kind):
    pieces = made(kind)
    for text in ("the cat sat", "a dög isn't here.", "the frog's dög"):
        ids = pieces.tokenizer.encode_ids([text])[0]
        spelt = b"".join(pieces.pieces[n] for n in ids).decode()
        assert spelt == (" " if kind in SPACED else "") + pieces.tokenizer.decode(ids)
    assert pieces.pieces[:3] == [b"", b"", b""]
    for number, piece in enumerate(pieces.pieces):
        assert pieces.begins_with_space[number] == piece[:1].isspace()


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@pytest.mark.parametrize(
    ("text", "before", "tail"),
    [
        ("the cat s", "the cat", " s"),
        ("the cat ", "the cat", " "),
        ("the cat", "the", " cat"),
        ("the dög", "the", " dög"),
        ("t", "", "t"),
        ("", "", ""),
    ],
)
def test_a_text_is_taken_up_before_its_last_word(kind, text, before, tail):
    pieces = made(kind)
    typed = pieces.resume_point(text)
    assert typed.ids == pieces.tokenizer.encode_ids([before])[0]
    lead = " " if kind in SPACED and not before else ""
    assert (typed.tail.decode(), typed.skip) == (lead + tail, 0)


def test_white_space_that_is_no_space_stays_before():
    assert made("bpe").resume_point("the\nca").tail == b"ca"
    assert made("characters").resume_point("the\nca").tail == b"ca"
    assert made("words").resume_point("the\nca").tail == b" ca"


def test_what_was_typed_is_read_as_the_vocabulary_does():
    assert made("bpe", lower=True).resume_point("the CA").tail == b" ca"


def test_words():
    assert first_word(b"  cat's ") == ("cat's", True)
    assert first_word(b" ca") == ("ca", False)
    assert first_word(b" \n") == ("", False)
    assert first_word("a\u3000".encode()) == ("a", True)


def test_letters_of_bytes():
    assert sorted(LETTER_TO_BYTE.values()) == list(range(256))
    assert LETTER_TO_BYTE["Ġ"] == 32


def test_a_vocabulary_without_words():
    with pytest.raises(ValueError, match="no token of letters or digits"):
        TokenBytes(train_tokenizer("words", ["! ? . !"], 20))
