"""Text <-> ids, by one class for every kind of vocabulary.

Special tokens have no text of their own: "</s>" in a sentence is five letters, never the id END.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import tokenizers
from tokenizers import decoders

from regard.files import write_atomic
from regard.text.special import END, SPECIALS, UNKNOWN

# Unicode's White_Space, as the `tokenizers` library has it; Python's \s also has U+001C to U+001F.
WORD_PATTERN = re.compile(r"(?:\S|[\x1c-\x1f])+")


class Encoding(NamedTuple):
    """`words[i]` is the number of the word that token i belongs to; None for special tokens.

    A token of white space belongs to the word that follows, or to the last one.
    """

    ids: list[int]
    tokens: list[str]
    words: list[int | None]


class Vocabulary:
    """What all vocabularies share, whoever made them."""

    def __init__(self, inner: tokenizers.Tokenizer, size: int) -> None:
        self._inner, self.size = inner, size

    def encode(self, text: str) -> Encoding:
        """The ids of the text, with no special tokens added."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Several texts in parallel; each comes out as it would alone."""
        check_texts(texts)
        encodings = self._inner.encode_batch(list(texts), add_special_tokens=False)
        results = []
        for text, encoding in zip(texts, encodings, strict=True):
            words = word_indices(text, [start for start, _ in encoding.offsets])
            results.append(Encoding(self._replace_specials(encoding.ids), encoding.tokens, words))
        return results

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Only the ids of `encode_batch`, which is quicker."""
        check_texts(texts)
        encodings = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._replace_specials(encoding.ids) for encoding in encodings]

    def encode_with_offsets(
        self, texts: Sequence[str]
    ) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """The ids of each text, and the characters (from, to) that each of them stands for."""
        check_texts(texts)
        encodings = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [(self._replace_specials(encoding.ids), encoding.offsets) for encoding in encodings]

    def encode_with_unknowns(self, texts: Sequence[str]) -> list[list[tuple[int, str]]]:
        """Each token's id, and how the text has it if the vocabulary has not; else ""."""
        check_texts(texts)
        results = []
        for text, encoding in zip(
            texts, self._inner.encode_batch(list(texts), add_special_tokens=False), strict=True
        ):
            ids = self._replace_specials(encoding.ids)
            results.append(
                [
                    (token_id, self.normalized(text[start:end]) if token_id == UNKNOWN else "")
                    for token_id, (start, end) in zip(ids, encoding.offsets, strict=True)
                ]
            )
        return results

    def words(self, text: str) -> list[str]:
        """What stands between white space: the words that `Encoding.words` counts."""
        return WORD_PATTERN.findall(text)

    def normalized(self, text: str) -> str:
        """As the vocabulary reads it: perhaps in lower case, or in a normal form."""
        normalizer = self._inner.normalizer
        return text if normalizer is None else normalizer.normalize_str(text)

    @property
    def is_byte_level(self) -> bool:
        """Whether tokens are made of bytes, of which a character may have several."""
        return isinstance(self._inner.decoder, decoders.ByteLevel)

    @property
    def is_word_level(self) -> bool:
        """Whether tokens are whole words, which spaces join."""
        return self._inner.decoder is None

    def token(self, token_id: int) -> str:
        """The entry of the vocabulary with this id; "" where the vocabulary has a gap."""
        return self._inner.id_to_token(self._check_ids([token_id])[0]) or ""

    def save(self, path: Path | str) -> None:
        """Write a `tokenizer.json`, whole or not at all."""
        write_atomic(Path(path), self.to_json().encode())

    def to_json(self) -> str:
        """What `save` writes. Two vocabularies with the same JSON are the same."""
        return self._inner.to_str(pretty=True)

    def _replace_specials(self, ids: list[int]) -> list[int]:
        """What a text may say of the ids that were found in it."""
        return ids

    def _check_ids(self, ids: Iterable[int]) -> list[int]:
        ids = list(ids)
        if ids and (min(ids) < 0 or max(ids) >= self.size):
            wrong = next(n for n in ids if not 0 <= n < self.size)
            raise ValueError(f"ids must be in [0, {self.size}), not {wrong}")
        return ids


class Tokenizer(Vocabulary):
    """A vocabulary with its way of cutting text. `train_tokeniser` makes one, `load` finds one."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        super().__init__(inner, inner.get_vocab_size())
        for token_id, token in enumerate(SPECIALS):
            if inner.token_to_id(token) != token_id:
                raise ValueError(f"token {token!r} must have id {token_id}: not made by regard")

    def decode(self, ids: Iterable[int], *, skip_specials: bool = True) -> str:
        """The text of the ids. An unknown token reads "<unk>"; the other specials are left out."""
        kept = [n for n in self._check_ids(ids) if not skip_specials or n > END]
        return self._inner.decode(kept, skip_special_tokens=False)

    def encoding_from_ids(self, ids: Iterable[int]) -> Encoding:
        """Tokens, and the words of `decode(ids)` that they are of: for ids that a model wrote."""
        ids = self._check_ids(ids)
        last = len(self.words(self.decode(ids))) - 1
        words: list[int | None] = []
        for end, token_id in enumerate(ids, 1):
            # Whatever were to follow this token: in which word would it be?
            word_index = len(self.words(self.decode(ids[:end]) + ".")) - 1
            words.append(None if token_id <= END or last < 0 else min(word_index, last))
        return Encoding(ids, [self.token(token_id) for token_id in ids], words)

    @classmethod
    def load(cls, path: Path | str) -> "Tokenizer":
        """Read what `save` wrote."""
        path = Path(path)
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file; a run folder holds a tokenizer.json")
        try:
            return cls(tokenizers.Tokenizer.from_str(path.read_text("utf-8")))
        except Exception as error:  # the library raises the base class for whatever it cannot read
            reason = " ".join(str(error).split())
            raise ValueError(f"{path}: not a tokeniser, or a damaged one ({reason})") from None

    def _replace_specials(self, ids: list[int]) -> list[int]:
        """A word "</s>" of the text is unknown: only we end sentences."""
        if ids and min(ids) <= END:
            return [n if n > END else UNKNOWN for n in ids]
        return ids


def word_indices(text: str, starts: list[int]) -> list[int | None]:
    ends = [match.end() for match in WORD_PATTERN.finditer(text)]
    if not ends:
        return [None] * len(starts)
    return [min(bisect_right(ends, start), len(ends) - 1) for start in starts]


def check_texts(texts: Sequence[str]) -> None:
    """Half of a surrogate pair is no character: it comes from broken JSON, and has no UTF-8."""
    for text in texts:
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                problem = f"character {error.start} is U+{ord(text[error.start]):04X}"
                raise ValueError(f"text is not valid Unicode: {problem}, half of a pair") from None
