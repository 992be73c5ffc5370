"""Words as rows of character ids, as ELMo spells them (Peters et al. 2018; the authors' code).

A word is its UTF-8 bytes between two marks, filled up to one length. A sentence begins and ends
with a word of its own, which no text can spell. Ids: 0 is no word at all (padding of a batch), a
byte is its number + 1, then come the five marks.
"""

from collections.abc import Iterable
from functools import lru_cache

NO_WORD = 0
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, FILL = range(257, 262)
SIZE = 262  # ids that there are
LONGEST = 50  # ids of a word, marks included


@lru_cache(1 << 16)
def spell(word: str, longest: int = LONGEST) -> tuple[int, ...]:
    """Of a longer word, the first bytes; what UTF-8 has no bytes for is left out."""
    room = check(longest) - 2
    return framed([byte + 1 for byte in word.encode("utf-8", "ignore")[:room]], longest)


def spell_sentence(words: Iterable[str], longest: int = LONGEST) -> list[tuple[int, ...]]:
    """The words, between the one that begins a sentence and the one that ends it."""
    check(longest)
    spelled = [spell(word, longest) for word in words]
    return [framed([SENTENCE_START], longest), *spelled, framed([SENTENCE_END], longest)]


def framed(ids: list[int], longest: int) -> tuple[int, ...]:
    marked = (WORD_START, *ids, WORD_END)
    return marked + (FILL,) * (longest - len(marked))


def check(longest: int) -> int:
    if longest < 3:
        raise ValueError(f"longest must be at least 3, for a byte and two marks, not {longest}")
    return longest
