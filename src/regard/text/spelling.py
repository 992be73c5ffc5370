"""Words as sequences of character ids, as in ELMo (Peters et al. 2018; the authors' code).

A word is its UTF-8 bytes between two boundary ids, padded to one length. A sentence begins and
ends with a special word that no text can contain. Ids: 0 is padding of a batch, a byte is its
number + 1, and 257 to 261 are the five special ids.
"""

from collections.abc import Iterable
from functools import lru_cache

from regard.errors import InputError

NO_WORD = 0
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, FILL = range(257, 262)
ALPHABET_SIZE = 262
MAX_WORD_LENGTH = 50  # ids of a word, boundaries included


@lru_cache(1 << 16)
def spell(word: str, max_length: int = MAX_WORD_LENGTH) -> tuple[int, ...]:
    """Return the ids of a word; excess bytes and lone surrogates are dropped."""
    max_bytes = check_max_length(max_length) - 2
    return with_word_boundaries(
        [byte + 1 for byte in word.encode("utf-8", "ignore")[:max_bytes]], max_length
    )


def spell_sentence(
    words: Iterable[str], max_length: int = MAX_WORD_LENGTH
) -> list[tuple[int, ...]]:
    """Return the ids of all words, between those of the start and the end of the sentence."""
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
        raise InputError(
            f"max_length must be at least 3, for a byte and two boundaries, not {max_length}"
        )
    return max_length
