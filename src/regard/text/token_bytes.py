"""What each token adds to a text, in bytes: where words begin, and where they end.

A word is what stands between white space, as everywhere in this room.
"""

from itertools import accumulate
from typing import NamedTuple

from regard.text.special import UNKNOWN
from regard.text.special_ids import AnyTokenizer
from regard.text.tokenizer import WORD_PATTERN, Tokenizer

REPLACEMENT_CHARACTER = "\ufffd"  # what half of a character reads as


class TypedText(NamedTuple):
    """A text that somebody is writing: `ids` up to its last word, `tail` as the tokens spell it.

    The tail is the space before the word, if tokens can hold it, and what there is of the word:
    nothing after white space. The first `skip` bytes of it still are of what stands before.
    """

    ids: list[int]
    tail: bytes
    skip: int


class TokenBytes:
    """Of all tokens of a vocabulary. A token that is never written (padding, the end) has none."""

    def __init__(self, tokenizer: AnyTokenizer):
        self.tokenizer = tokenizer
        first, self.anchor = find_anchor(tokenizer)
        self.pieces = [self.appended_bytes(first, n) for n in range(tokenizer.size)]
        self.unknown = UNKNOWN if isinstance(tokenizer, Tokenizer) else tokenizer.special.unknown
        # what begins with white space ends the word before
        self.begins_with_space = [
            bool(piece) and not WORD_PATTERN.match(bytes_to_text(piece)) for piece in self.pieces
        ]

    def appended_bytes(self, first: int, token_id: int) -> bytes:
        """By a token, after another."""
        added_text = self.tokenizer.decode([first, token_id])[len(self.anchor) :]
        if added_text and self.tokenizer.is_byte_level:
            return bytes(LETTER_TO_BYTE[letter] for letter in self.tokenizer.token(token_id))
        return added_text.encode()

    def resume_point(self, text: str) -> TypedText:
        """Where to take up a text, so that its last word may be cut into any tokens."""
        *_, last = [None, *WORD_PATTERN.finditer(text)]
        start = last.start() if last is not None and last.end() == len(text) else len(text)
        # with another word in the place of the last one: it shows where tokens have the space
        ids = self.tokenizer.encode_ids([text[:start] + self.anchor])[0]
        ends = [0, *accumulate(len(self.pieces[n]) for n in ids)]
        spelled = b"".join(self.pieces[n] for n in ids)
        before = len(spelled) - len(self.anchor.encode())
        cut = before - spelled[:before].endswith(b" ")
        kept_tokens = max(k for k, end in enumerate(ends) if end <= cut)
        tail = (
            spelled[ends[kept_tokens] : before] + self.tokenizer.normalized(text[start:]).encode()
        )
        return TypedText(ids[:kept_tokens], tail, cut - ends[kept_tokens])


def find_anchor(tokenizer: AnyTokenizer) -> tuple[int, str]:
    """A token, and the word that it is, after which to see what others add."""
    words = {n: tokenizer.decode([n]) for n in range(tokenizer.size)}
    for is_kind in (str.isalpha, str.isalnum):
        for token_id, word in words.items():
            if is_kind(word) and tokenizer.decode(tokenizer.encode_ids([word])[0]).strip() == word:
                return token_id, word
    raise ValueError("the vocabulary has no token of letters or digits: it has no words")


def bytes_to_text(spelled: bytes) -> str:
    return spelled.decode("utf-8", "replace")


def first_word(spelled: bytes) -> tuple[str, bool]:
    """The first word of a text, and whether it is over; "" if there is none."""
    text = bytes_to_text(spelled)
    match = WORD_PATTERN.search(text)
    return ("", False) if match is None else (match[0], match.end() < len(text))


def byte_alphabet() -> dict[str, int]:
    """The letters that byte-level vocabularies are written in (Radford et al. 2019, their code)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {chr(byte): byte for byte in plain}
    return letters | {chr(256 + n): byte for n, byte in enumerate(others)}


LETTER_TO_BYTE = byte_alphabet()
