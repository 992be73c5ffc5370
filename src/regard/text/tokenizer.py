"""Text <-> ids, with one class for every kind of vocabulary.

Special tokens are not recognized in texts: "</s>" in a sentence is five letters, never the id END.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import tokenizers
from tokenizers import decoders

from regard.errors import InputError
from regard.files import write_atomic
from regard.text.special import END, SPECIALS, UNKNOWN
from regard.text.tokenizer_files import explain_tokenizer_errors, load_inner_tokenizer

# Words between Unicode's White_Space, as in `tokenizers`; Python's \s includes U+001C to U+001F.
WORD_PATTERN = re.compile(r"(?:\S|[\x1c-\x1f])+")


ENCODING_PROBLEM = "the tokenizer cannot encode a text"


class Encoding(NamedTuple):
    """A tokenized text; `words[i]` is the index of the word of token i, None for special tokens.

    A token of white space belongs to the next word, or to the last word at the end of the text.
    """

    ids: list[int]
    tokens: list[str]
    words: list[int | None]


class Vocabulary:
    """The base class of all tokenizers."""

    def __init__(self, inner: tokenizers.Tokenizer, size: int) -> None:
        self._inner, self.size = inner, size

    def encode(self, text: str) -> Encoding:
        """Encode a text; no special tokens are added."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Encode several texts in parallel; each result is independent of the others."""
        check_texts(texts)
        results = []
        for text, encoding in zip(texts, self._encode_texts(texts), strict=True):
            words = word_indices(text, [start for start, _ in encoding.offsets])
            results.append(Encoding(self._replace_specials(encoding.ids), encoding.tokens, words))
        return results

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return only the ids of `encode_batch`, which is faster."""
        check_texts(texts)
        with explain_tokenizer_errors(ENCODING_PROBLEM):
            encodings = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._replace_specials(encoding.ids) for encoding in encodings]

    def encode_with_offsets(
        self, texts: Sequence[str]
    ) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Return the ids of each text, and the character offsets (start, end) of each id."""
        check_texts(texts)
        encodings = self._encode_texts(texts)
        return [(self._replace_specials(encoding.ids), encoding.offsets) for encoding in encodings]

    def encode_with_unknowns(self, texts: Sequence[str]) -> list[list[tuple[int, str]]]:
        """Return the id of each token, with its text if it is unknown, else ""."""
        check_texts(texts)
        results = []
        for text, encoding in zip(texts, self._encode_texts(texts), strict=True):
            ids = self._replace_specials(encoding.ids)
            results.append(
                [
                    (token_id, self.normalized(text[start:end]) if token_id == UNKNOWN else "")
                    for token_id, (start, end) in zip(ids, encoding.offsets, strict=True)
                ]
            )
        return results

    def words(self, text: str) -> list[str]:
        """Split at white space into the words that `Encoding.words` counts."""
        return WORD_PATTERN.findall(text)

    def normalized(self, text: str) -> str:
        """Normalize a text as the tokenizer does: to lower case or a normal form, for example."""
        normalizer = self._inner.normalizer
        return text if normalizer is None else normalizer.normalize_str(text)

    @property
    def is_byte_level(self) -> bool:
        """Return whether tokens consist of bytes; a character may have several."""
        return isinstance(self._inner.decoder, decoders.ByteLevel)

    @property
    def is_word_level(self) -> bool:
        """Return whether each token is a word; decoding joins them by spaces."""
        return self._inner.decoder is None

    def token(self, token_id: int) -> str:
        """Return the token with this id, or "" if the vocabulary has a gap there."""
        return self._inner.id_to_token(self._check_ids([token_id])[0]) or ""

    def token_id(self, token: str) -> int | None:
        """Return the id of a token, or None if the vocabulary does not have it."""
        return self._inner.token_to_id(token)

    def save(self, path: Path | str) -> None:
        """Write a `tokenizer.json`, atomically."""
        write_atomic(Path(path), self.to_json().encode())

    def to_json(self) -> str:
        """Return the JSON that `save` writes; equal tokenizers have equal JSON."""
        return self._inner.to_str(pretty=True)

    def _encode_texts(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        with explain_tokenizer_errors(ENCODING_PROBLEM):
            return self._inner.encode_batch(list(texts), add_special_tokens=False)

    def _replace_specials(self, ids: list[int]) -> list[int]:
        """Replace special ids that a text may not contain; none by default."""
        return ids

    def _check_ids(self, ids: Iterable[int]) -> list[int]:
        ids = list(ids)
        if ids and (min(ids) < 0 or max(ids) >= self.size):
            wrong = next(n for n in ids if not 0 <= n < self.size)
            raise InputError(f"ids must be in [0, {self.size}), not {wrong}")
        return ids


class Tokenizer(Vocabulary):
    """A tokenizer trained by `train_tokenizer`, or loaded by `load`."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        super().__init__(inner, inner.get_vocab_size())
        for token_id, token in enumerate(SPECIALS):
            if inner.token_to_id(token) != token_id:
                raise InputError(
                    f"token {token!r} must have id {token_id}; train the tokenizer with regard"
                )

    def decode(self, ids: Iterable[int], *, skip_specials: bool = True) -> str:
        """Return the text of the ids; unknown tokens are "<unk>", other specials are skipped."""
        kept = [n for n in self._check_ids(ids) if not skip_specials or n > END]
        return self._inner.decode(kept, skip_special_tokens=False)

    def encoding_from_ids(self, ids: Iterable[int]) -> Encoding:
        """Return the tokens of generated ids, and their words in `decode(ids)`."""
        ids = self._check_ids(ids)
        last = len(self.words(self.decode(ids))) - 1
        words: list[int | None] = []
        for end, token_id in enumerate(ids, 1):
            # The word of a token is that of a character appended after it.
            word_index = len(self.words(self.decode(ids[:end]) + ".")) - 1
            words.append(None if token_id <= END or last < 0 else min(word_index, last))
        return Encoding(ids, [self.token(token_id) for token_id in ids], words)

    @classmethod
    def load(cls, path: Path | str) -> "Tokenizer":
        """Load a tokenizer that `save` has written."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path}: there is no such file; give the tokenizer.json of a run")
        inner = load_inner_tokenizer(path)
        try:
            return cls(inner)
        except ValueError as error:
            raise InputError(f"{path}: not a tokenizer of regard ({error})") from None

    def _replace_specials(self, ids: list[int]) -> list[int]:
        """Replace special ids by UNKNOWN: a word "</s>" in a text is not the end."""
        if ids and min(ids) <= END:
            return [n if n > END else UNKNOWN for n in ids]
        return ids


def word_indices(text: str, starts: list[int]) -> list[int | None]:
    ends = [match.end() for match in WORD_PATTERN.finditer(text)]
    if not ends:
        return [None] * len(starts)
    return [min(bisect_right(ends, start), len(ends) - 1) for start in starts]


def check_texts(texts: Sequence[str]) -> None:
    """Refuse lone surrogates: they come from broken JSON and cannot be encoded in UTF-8."""
    for text in texts:
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                problem = f"character {error.start} is U+{ord(text[error.start]):04X}"
                raise InputError(
                    f"text is not valid Unicode: {problem}, half of a surrogate pair"
                ) from None
