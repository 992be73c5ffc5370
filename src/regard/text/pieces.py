"""What each token adds to a text, in bytes: where words begin, and where they end.

A word is what stands between white space, as everywhere in this room.
"""

from itertools import accumulate
from typing import NamedTuple

from regard.text.marks import AnyTokeniser
from regard.text.special import UNKNOWN
from regard.text.tokeniser import WORD, Tokeniser

NO_CHARACTER = "\ufffd"  # what half of a character reads as


class Typed(NamedTuple):
    """A text that somebody is writing: `ids` up to its last word, `tail` as the tokens spell it.

    The tail is the space before the word, if tokens can hold it, and what there is of the word:
    nothing after white space. The first `skip` bytes of it still are of what stands before.
    """

    ids: list[int]
    tail: bytes
    skip: int


class Pieces:
    """Of all tokens of a vocabulary. A token that is never written (padding, the end) has none."""

    def __init__(self, text: AnyTokeniser):
        self.text = text
        first, self.anchor = anchor_of(text)
        self.all = [self.added(first, n) for n in range(text.size)]
        self.unknown = UNKNOWN if isinstance(text, Tokeniser) else text.special.unknown
        # what begins with white space ends the word before
        self.opens = [bool(piece) and not WORD.match(read(piece)) for piece in self.all]

    def added(self, first: int, number: int) -> bytes:
        """By a token, after another."""
        more = self.text.decode([first, number])[len(self.anchor) :]
        if more and self.text.in_bytes:
            return bytes(BYTES[letter] for letter in self.text.token(number))
        return more.encode()

    def typed(self, text: str) -> Typed:
        """Where to take up a text, so that its last word may be cut into any tokens."""
        *_, last = [None, *WORD.finditer(text)]
        start = last.start() if last is not None and last.end() == len(text) else len(text)
        # with another word in the place of the last one: it shows where tokens have the space
        ids = self.text.ids([text[:start] + self.anchor])[0]
        ends = [0, *accumulate(len(self.all[n]) for n in ids)]
        spelt = b"".join(self.all[n] for n in ids)
        before = len(spelt) - len(self.anchor.encode())
        cut = before - spelt[:before].endswith(b" ")
        kept = max(k for k, end in enumerate(ends) if end <= cut)
        tail = spelt[ends[kept] : before] + self.text.normal(text[start:]).encode()
        return Typed(ids[:kept], tail, cut - ends[kept])


def anchor_of(text: AnyTokeniser) -> tuple[int, str]:
    """A token, and the word that it is, after which to see what others add."""
    words = {n: text.decode([n]) for n in range(text.size)}
    for kind in (str.isalpha, str.isalnum):
        for number, word in words.items():
            if kind(word) and text.decode(text.ids([word])[0]).strip() == word:
                return number, word
    raise ValueError("the vocabulary has no token of letters or digits: it has no words")


def read(spelt: bytes) -> str:
    return spelt.decode("utf-8", "replace")


def first_word(spelt: bytes) -> tuple[str, bool]:
    """The first word of a text, and whether it is over; "" if there is none."""
    text = read(spelt)
    found = WORD.search(text)
    return ("", False) if found is None else (found[0], found.end() < len(text))


def byte_letters() -> dict[str, int]:
    """The letters that byte-level vocabularies are written in (Radford et al. 2019, their code)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {chr(byte): byte for byte in plain}
    return letters | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTES = byte_letters()
