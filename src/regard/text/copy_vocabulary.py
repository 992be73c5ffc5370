"""A vocabulary and, for one text, the words that it does not know: an id for each, beyond its own.

The first unknown word of the text has the id `size`, the next new one `size + 1`, and so on: what a
model copies from the text gets its word back.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.text.special import END, UNKNOWN
from regard.text.tokenizer import Tokenizer


class CopyEncoding(NamedTuple):
    """`words[k]` has the id `size + k`. `length` is that of the whole text, before it was cut."""

    ids: list[int]
    words: list[str]
    full_length: int


def encode_copy_sources(
    tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int
) -> list[CopyEncoding]:
    """The first `longest` tokens of each text, with an id for every word."""
    encodings = []
    for tokens in tokenizer.encode_with_unknowns(texts):
        words: dict[str, int] = {}
        ids = [
            tokenizer.size + words.setdefault(word, len(words)) if token_id == UNKNOWN else token_id
            for token_id, word in tokens[:max_tokens]
        ]
        encodings.append(CopyEncoding(ids, list(words), len(tokens)))
    return encodings


def encode_copy_targets(
    tokenizer: Tokenizer, texts: Sequence[str], words: Sequence[Sequence[str]]
) -> list[list[int]]:
    """Ids of texts that may use the unknown words of others: others stay unknown."""
    encodings = []
    for tokens, copy_words in zip(tokenizer.encode_with_unknowns(texts), words, strict=True):
        copy_ids = {word: tokenizer.size + offset for offset, word in enumerate(copy_words)}
        encodings.append([copy_ids.get(word, token_id) for token_id, word in tokens])
    return encodings


def tokens_with_copies(tokenizer: Tokenizer, ids: Iterable[int], words: Sequence[str]) -> list[str]:
    """Each id as a token, or as the word that it stands for."""
    return [tokenizer.token(n) if n < tokenizer.size else words[n - tokenizer.size] for n in ids]


def decode_with_copies(tokenizer: Tokenizer, ids: Sequence[int], words: Sequence[str]) -> str:
    """The text of ids that may be beyond the vocabulary; where there are any, words make it up."""
    if not words:
        return tokenizer.decode(ids)
    return " ".join(tokens_with_copies(tokenizer, (n for n in ids if n > END), words))
