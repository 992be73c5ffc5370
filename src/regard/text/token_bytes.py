"""The bytes that each token appends to a text, and where words begin and end in them.

Words are separated by white space, as in `regard.text.tokenizer`.
"""

from itertools import accumulate
from typing import NamedTuple

from regard.errors import InputError
from regard.text.special import UNKNOWN
from regard.text.special_ids import AnyTokenizer
from regard.text.tokenizer import WORD_PATTERN, Tokenizer

REPLACEMENT_CHARACTER = "\ufffd"  # an incomplete character decodes to it


class TypedText(NamedTuple):
    """An unfinished text: `ids` up to its last word, and `tail`, the bytes of that word.

    The tail includes the space before the word, if tokens can contain it; after white space there
    is no word. The first `skip` bytes of the tail belong to the text before the word.
    """

    ids: list[int]
    tail: bytes
    skip: int


class TokenBytes:
    """The bytes of all tokens of a vocabulary; padding and other special tokens have none."""

    def __init__(self, tokenizer: AnyTokenizer):
        self.tokenizer = tokenizer
        first, self.anchor = find_anchor(tokenizer)
        self.pieces = [self.appended_bytes(first, n) for n in range(tokenizer.size)]
        self.unknown = UNKNOWN if isinstance(tokenizer, Tokenizer) else tokenizer.special.unknown
        # A token that begins with white space ends the word before it.
        self.begins_with_space = [
            bool(piece) and not WORD_PATTERN.match(bytes_to_text(piece)) for piece in self.pieces
        ]

    def appended_bytes(self, first: int, token_id: int) -> bytes:
        """Return the bytes that a token appends after the token `first`."""
        added_text = self.tokenizer.decode([first, token_id])[len(self.anchor) :]
        if added_text and self.tokenizer.is_byte_level:
            return bytes(LETTER_TO_BYTE[letter] for letter in self.tokenizer.token(token_id))
        return added_text.encode()

    def resume_point(self, text: str) -> TypedText:
        """Cut a text before its last word, so that the word may be tokenized in any way."""
        *_, last = [None, *WORD_PATTERN.finditer(text)]
        start = last.start() if last is not None and last.end() == len(text) else len(text)
        # The anchor in place of the last word shows which token contains the space.
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
    """Return a token that is a word, and the word; other tokens are decoded after it."""
    words = {n: tokenizer.decode([n]) for n in range(tokenizer.size)}
    for is_kind in (str.isalpha, str.isalnum):
        for token_id, word in words.items():
            if is_kind(word) and tokenizer.decode(tokenizer.encode_ids([word])[0]).strip() == word:
                return token_id, word
    raise InputError("the vocabulary has no token of letters or digits; use one with words")


def bytes_to_text(spelled: bytes) -> str:
    return spelled.decode("utf-8", "replace")


def first_word(spelled: bytes) -> tuple[str, bool]:
    """Return the first word of a text (or ""), and whether it is complete."""
    text = bytes_to_text(spelled)
    match = WORD_PATTERN.search(text)
    return ("", False) if match is None else (match[0], match.end() < len(text))


def byte_alphabet() -> dict[str, int]:
    """Return the bytes of the letters of byte-level vocabularies (code of Radford et al. 2019)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {chr(byte): byte for byte in plain}
    return letters | {chr(256 + n): byte for n, byte in enumerate(others)}


LETTER_TO_BYTE = byte_alphabet()
