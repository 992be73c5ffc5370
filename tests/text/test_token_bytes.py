"""Tests of the bytes of tokens, and of the resume point of an unfinished text."""

import pytest

from regard.text.token_bytes import LETTER_TO_BYTE, TokenBytes, first_word
from regard.text.train import TOKENIZER_KINDS, train_tokenizer

TEXTS = ["the cat sat on the mat. a dög isn't here.", "the Log is ours, and the frog's"] * 9
SPACED = {"bpe", "unigram", "wordpiece", "words"}  # also before the first word


def build_token_bytes(kind: str, **options: bool) -> TokenBytes:
    return TokenBytes(train_tokenizer(kind, TEXTS, 300, **options))


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_pieces_match_decoding(kind):
    token_bytes = build_token_bytes(kind)
    for text in ("the cat sat", "a dög isn't here.", "the frog's dög"):
        ids = token_bytes.tokenizer.encode_ids([text])[0]
        spelled = b"".join(token_bytes.pieces[n] for n in ids).decode()
        assert spelled == (" " if kind in SPACED else "") + token_bytes.tokenizer.decode(ids)
    assert token_bytes.pieces[:3] == [b"", b"", b""]
    for number, piece in enumerate(token_bytes.pieces):
        assert token_bytes.begins_with_space[number] == piece[:1].isspace()


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
def test_resume_point_is_before_the_last_word(kind, text, before, tail):
    token_bytes = build_token_bytes(kind)
    typed = token_bytes.resume_point(text)
    assert typed.ids == token_bytes.tokenizer.encode_ids([before])[0]
    leading_space = " " if kind in SPACED and not before else ""
    assert (typed.tail.decode(), typed.skip) == (leading_space + tail, 0)


def test_other_white_space_is_not_in_the_tail():
    assert build_token_bytes("bpe").resume_point("the\nca").tail == b"ca"
    assert build_token_bytes("characters").resume_point("the\nca").tail == b"ca"
    assert build_token_bytes("words").resume_point("the\nca").tail == b" ca"


def test_typed_text_is_normalized():
    assert build_token_bytes("bpe", lower=True).resume_point("the CA").tail == b" ca"


def test_first_word():
    assert first_word(b"  cat's ") == ("cat's", True)
    assert first_word(b" ca") == ("ca", False)
    assert first_word(b" \n") == ("", False)
    assert first_word("a\u3000".encode()) == ("a", True)


def test_byte_alphabet():
    assert sorted(LETTER_TO_BYTE.values()) == list(range(256))
    assert LETTER_TO_BYTE["Ġ"] == 32


def test_vocabulary_without_words():
    with pytest.raises(ValueError, match="no token of letters or digits"):
        TokenBytes(train_tokenizer("words", ["! ? . !"], 20))
