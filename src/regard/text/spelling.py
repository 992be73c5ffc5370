"""Words as rows of character ids, as ELMo spells them (Peters et al. 2018; the authors' code).

A word is its UTF-8 bytes between two marks, filled up to one length. A sentence begins and ends
with a word of its own, which no text can spell. Ids: 0 is no word at all (padding of a batch), a
byte is its number + 1, then come the five marks.
"""

from collections.abc import Iterable
from functools import lru_cache

NO_WORD = 0
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, FILL = range(257, 262)
ALPHABET_SIZE = 262  # ids that there are
MAX_WORD_LENGTH = 50  # ids of a word, marks included


@lru_cache(1 << 16)
def spell(word: str, max_length: int = MAX_WORD_LENGTH) -> tuple[int, ...]:
    """Of a longer word, the first bytes; what UTF-8 has no bytes for is left out."""
    max_bytes = check_max_length(max_length) - 2
    return with_word_boundaries(
        [byte + 1 for byte in word.encode("utf-8", "ignore")[:max_bytes]], max_length
    )


def spell_sentence(
    words: Iterable[str], max_length: int = MAX_WORD_LENGTH
) -> list[tuple[int, ...]]:
    """The words, between the one that begins a sentence and the one that ends it."""
    check_max_length(max_length)
    spelled = [spell(word, max_length) for word in words]
    return [
        with_word_boundaries([SENTENCE_START], max_length),
        *spelled,
        with_word_boundaries([SENTENCE_END], max_length),
    ]


def with_word_boundaries(ids: list[int], max_length: int) -> tuple[int, ...]:
    bounded = (WORD_START, *ids, WORD_END)
    return bounded + (FILL,) * (max_length - len(bounded))


def check_max_length(max_length: int) -> int:
    if max_length < 3:
        raise ValueError(f"longest must be at least 3, for a byte and two marks, not {max_length}")
    return max_length
