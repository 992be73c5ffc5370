"""Temporary ids for the unknown words of a text, so that a model can copy them.

The first unknown word of a text has the id `size` of the vocabulary, the next new one `size + 1`,
and so on.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.text.special import END, UNKNOWN
from regard.text.tokenizer import Tokenizer


class CopyEncoding(NamedTuple):
    """Ids of a truncated text; `words[k]` has the id `size + k`.

    `full_length` counts the tokens before truncation.
    """

    ids: list[int]
    words: list[str]
    full_length: int


def encode_copy_sources(
    tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int
) -> list[CopyEncoding]:
    """Encode the first `max_tokens` tokens of each text, with temporary ids for unknown words."""
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
    """Encode each text with the temporary ids of its source's `words`; other words stay unknown."""
    encodings = []
    for tokens, copy_words in zip(tokenizer.encode_with_unknowns(texts), words, strict=True):
        copy_ids = {word: tokenizer.size + offset for offset, word in enumerate(copy_words)}
        encodings.append([copy_ids.get(word, token_id) for token_id, word in tokens])
    return encodings


def tokens_with_copies(tokenizer: Tokenizer, ids: Iterable[int], words: Sequence[str]) -> list[str]:
    """Return the token of each id, or the word of a temporary id."""
    return [tokenizer.token(n) if n < tokenizer.size else words[n - tokenizer.size] for n in ids]


def decode_with_copies(tokenizer: Tokenizer, ids: Sequence[int], words: Sequence[str]) -> str:
    """Decode ids that may be temporary; with copied words, tokens are joined by spaces."""
    if not words:
        return tokenizer.decode(ids)
    return " ".join(tokens_with_copies(tokenizer, (n for n in ids if n > END), words))
