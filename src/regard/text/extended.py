"""A vocabulary and, for one text, the words that it does not know: an id for each, beyond its own.

The first unknown word of the text has the id `size`, the next new one `size + 1`, and so on: what a
model copies from the text gets its word back.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.text.special import END, UNKNOWN
from regard.text.tokeniser import Tokeniser


class Extended(NamedTuple):
    """`words[k]` has the id `size + k`. `length` is that of the whole text, before it was cut."""

    ids: list[int]
    words: list[str]
    length: int


def extended(text: Tokeniser, texts: Sequence[str], longest: int) -> list[Extended]:
    """The first `longest` tokens of each text, with an id for every word."""
    found = []
    for spelled in text.spelled(texts):
        words: dict[str, int] = {}
        ids = [
            text.size + words.setdefault(word, len(words)) if number == UNKNOWN else number
            for number, word in spelled[:longest]
        ]
        found.append(Extended(ids, list(words), len(spelled)))
    return found


def seen_from(
    text: Tokeniser, texts: Sequence[str], words: Sequence[Sequence[str]]
) -> list[list[int]]:
    """Ids of texts that may use the unknown words of others: others stay unknown."""
    found = []
    for spelled, known in zip(text.spelled(texts), words, strict=True):
        places = {word: text.size + place for place, word in enumerate(known)}
        found.append([places.get(word, number) for number, word in spelled])
    return found


def tokens_of(text: Tokeniser, ids: Iterable[int], words: Sequence[str]) -> list[str]:
    """Each id as a token, or as the word that it stands for."""
    return [text.token(n) if n < text.size else words[n - text.size] for n in ids]


def decoded(text: Tokeniser, ids: Sequence[int], words: Sequence[str]) -> str:
    """The text of ids that may be beyond the vocabulary; where there are any, words make it up."""
    if not words:
        return text.decode(ids)
    return " ".join(tokens_of(text, (n for n in ids if n > END), words))
